import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Tab, ViewState } from "../state";
import { FRESH } from "../state";

const TABS: readonly { tab: Tab; label: string; about: string }[] = [
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
];

/** Goes to the other tab, on the same run and host: what was looked at in one means nothing in the other. */
export function openTab(store: Store<ViewState>, tab: Tab): void {
  if (store.get().tab !== tab) store.set({ tab, module: "", space: "", search: "", full: false, ...FRESH });
}

export function Tabs({ store }: { store: Store<ViewState> }): JSX.Element {
  const open = useStore(store, (state) => state.tab);
  return (
    <div class="tabs" role="tablist" aria-label="Views">
      {TABS.map(({ tab, label, about }) => (
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
