import { useLayoutEffect, useRef } from "preact/hooks";
import type { Api } from "../../payload/api";
import type { Answers } from "../data/use_fetched";
import { store, useViewState } from "../state/view_state";
import { nextTheme } from "./keys";
import { LiveStatusLine } from "./live_status";
import { PasteIcon } from "./paste";
import { Pickers, type PickersProps } from "./pickers";
import { type OptionalTabs, ReportBadge, tabsOf } from "./report";
import { ShareMenu } from "./share_menu";
import { Tabs } from "./tabs";

interface Props extends PickersProps {
  api: Api;
  /** Answers about the run's recordings. */
  answers: { readonly current: Answers };
  has: OptionalTabs;
  onPaste: () => void;
  onHelp: () => void;
}

const THEME_ICONS = { auto: "◐", light: "☀", dark: "☾" } as const;

export function Header(props: Props) {
  const { api, runs, run, recordings, options, answers, has, onPaste, onHelp } = props;
  const { report } = api;
  // The link contains the whole state, so it must be rendered after every change.
  const state = useViewState((all) => all);
  const theme = `Theme: ${state.theme === "auto" ? "system" : state.theme}`;
  const header = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const { current } = header;
    if (current === null) return;
    // The panel below sticks to the header, which has as many lines as the window's width requires.
    const observer = new ResizeObserver(() =>
      current.parentElement?.style.setProperty("--header", `${current.offsetHeight}px`),
    );
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return (
    <header class="top" ref={header}>
      <h1>Memory</h1>
      <Tabs tabs={tabsOf(report, has)} recordings={recordings} />
      {state.tab === "fit" ? <span class="spacer" /> : <Pickers {...{ runs, run, recordings, options }} />}
      {report === null && <LiveStatusLine {...{ recordings, answers }} />}
      <nav>
        {report !== null && <ReportBadge report={report} />}
        <ShareMenu api={api} run={report === null ? run : ""} />
        {report === null && (
          <button
            class="quiet paste-button"
            data-testid="paste"
            aria-label="Paste error"
            title="Paste an out-of-memory error ( Ctrl + V ), or drop a file on the page"
            onClick={onPaste}
          >
            <PasteIcon />
            <span>Paste error</span>
          </button>
        )}
        <button
          class="quiet"
          data-testid="theme-toggle"
          aria-label={theme}
          title={`${theme} ( t )`}
          onClick={() => store.set({ theme: nextTheme(state.theme) })}
        >
          {THEME_ICONS[state.theme]}
        </button>
        <button
          class="quiet"
          data-testid="help"
          aria-label="Keyboard help"
          title="Help ( ? )"
          onClick={onHelp}
        >
          ?
        </button>
      </nav>
    </header>
  );
}
