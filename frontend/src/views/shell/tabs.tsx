import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Tab, ViewState } from "../state";
import { FRESH } from "../state";

const TABS: readonly { tab: Tab; label: string; about: string }[] = [
  {
    tab: "overview",
    label: "Overview",
    about: "Every program and memory of the run, worst first",
  },
  {
    tab: "memory_viewer",
    label: "Memory Viewer",
    about: "What each program holds, by its compiled schedule",
  },
  {
    tab: "memory_profile",
    label: "Memory Profile",
    about: "What the allocators did while the profile was taken",
  },
  {
    tab: "snapshots",
    label: "Snapshots",
    about: "What was there at one moment: device memory profiles, and errors that ran out of memory",
  },
  {
    tab: "compare",
    label: "Compare",
    about: "What changed from one recording, or moment, to another",
  },
];

/** Goes to another tab, on the same run and host: what was looked at in one means nothing in the other. */
export function openTab(store: Store<ViewState>, tab: Tab): void {
  if (store.get().tab !== tab) store.set({ tab, module: "", space: "", search: "", full: false, ...FRESH });
}

export function Tabs({ tabs, store }: { tabs: readonly Tab[]; store: Store<ViewState> }): JSX.Element {
  const open = useStore(store, (state) => state.tab);
  return (
    <div class="tabs" role="tablist" aria-label="Views">
      {TABS.filter(({ tab }) => tabs.includes(tab)).map(({ tab, label, about }) => (
        <button
          key={tab}
          role="tab"
          aria-selected={tab === open}
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
