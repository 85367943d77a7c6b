import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Tab, ViewState } from "../state/view_state";
import { NEW_RECORDING } from "../state/view_state";

const TABS: readonly { tab: Tab; label: string; about: string }[] = [
  {
    tab: "overview",
    label: "Overview",
    about: "Every program and memory of the run, least headroom first",
  },
  {
    tab: "memory_viewer",
    label: "Memory Viewer",
    about: "Memory of a compiled program, in program order",
  },
  {
    tab: "memory_profile",
    label: "Memory Profile",
    about: "Memory of an allocator over time",
  },
  {
    tab: "snapshots",
    label: "Snapshots",
    about: "Memory at one moment: device memory profiles and out-of-memory errors",
  },
  {
    tab: "compare",
    label: "Compare",
    about: "Changes between two recordings or two moments",
  },
  {
    tab: "fit",
    label: "Fit",
    about: "Candidates of a fit: which programs fit on which accelerators, and the largest batch",
  },
];

/** Go to another tab of the same run and host. The selection is reset, as it means nothing there. */
export function openTab(store: Store<ViewState>, tab: Tab): void {
  if (store.get().tab !== tab)
    store.set({ tab, module: "", space: "", search: "", timeline_only: false, ...NEW_RECORDING });
}

export function Tabs({ tabs, store }: { tabs: readonly Tab[]; store: Store<ViewState> }): JSX.Element {
  const open = useStore(store, (state) => state.tab);
  return (
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown={moveFocus}>
      {TABS.filter(({ tab }) => tabs.includes(tab)).map(({ tab, label, about }) => (
        <button
          key={tab}
          role="tab"
          aria-selected={tab === open}
          tabindex={tab === open ? 0 : -1}
          data-testid={`tab-${tab}`}
          title={about}
          onClick={() => openTab(store, tab)}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

/** One stop of the Tab key for all tabs; arrows go from one to the next, Enter opens it: others may take long. */
function moveFocus(event: KeyboardEvent): void {
  const by = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
  if (by === undefined || !(event.currentTarget instanceof HTMLElement)) return;
  const tabs = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
  const at = tabs.findIndex((tab) => tab === document.activeElement);
  event.preventDefault();
  tabs.at(Math.min(Math.max(at + by, 0), tabs.length - 1))?.focus();
}
