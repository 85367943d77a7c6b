import type { JSX } from "preact";
import { useContext } from "preact/hooks";
import { moveTabFocus } from "../../base/input";
import { PrintingContext } from "../browser/printing";
import { store, useViewState, type ViewState } from "../state/view_state";

/** A tab below the charts. Its contents are mounted while it is open. */
export interface BelowTab {
  key: ViewState["below"];
  label: string;
  contents: () => JSX.Element;
}

interface Props {
  /** The first one is open unless the state names another. */
  tabs: readonly BelowTab[];
}

/** Tabs below the charts; printed, their contents follow one another. */
export function Below({ tabs }: Props) {
  const wanted = useViewState((state) => state.below);
  const printing = useContext(PrintingContext);
  const open = tabs.find(({ key }) => key === wanted) ?? tabs[0];
  if (printing)
    return (
      <>
        {tabs.map(({ key, label, contents }) => (
          <div key={key} class="below">
            <h2>{label}</h2>
            {contents()}
          </div>
        ))}
      </>
    );
  return (
    <div class="below" data-testid="below">
      <div class="tabs" role="tablist" aria-label="Below the charts" onKeyDown={moveTabFocus}>
        {tabs.map(({ key, label }) => (
          <button
            key={key}
            role="tab"
            id={`below-tab-${key}`}
            aria-selected={key === open.key}
            aria-controls="below-contents"
            tabindex={key === open.key ? 0 : -1}
            data-testid={`below-${key}`}
            onClick={(event) => {
              store.set({ below: key });
              showContents(event.currentTarget);
            }}
          >
            {label}
          </button>
        ))}
      </div>
      <div id="below-contents" role="tabpanel" aria-labelledby={`below-tab-${open.key}`} key={open.key}>
        {open.contents()}
      </div>
    </div>
  );
}

/** Scroll the tabs to the middle of the window if there is no room for contents below them. */
function showContents(tab: HTMLElement): void {
  if (tab.getBoundingClientRect().bottom > 0.7 * window.innerHeight) tab.scrollIntoView({ block: "center" });
}
