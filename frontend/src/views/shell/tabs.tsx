import type { Summary } from "../../payload/generated/answers";
import { aboutTab, isOfOneRecording, recordingsOf, tabName } from "../state/tab_names";
import { NEW_RECORDING, store, type Tab, useViewState } from "../state/view_state";
import { moveTabFocus } from "../widgets/tab_keys";

/**
 * Go to another tab of the same run, and of the same host if that has data there. The selection is reset, as it means
 * nothing there.
 */
export function openTab(tab: Tab, recordings: readonly Summary[] | null): void {
  const { tab: open, host } = store.get();
  if (open === tab) return;
  const there = recordingsOf(tab, recordings ?? []) ?? [];
  const kept = there.length === 0 || there.some((recording) => recording.host === host) ? host : "";
  store.set({ tab, host: kept, module: "", space: "", search: "", timeline_only: false, ...NEW_RECORDING });
}

interface Props {
  tabs: readonly Tab[];
  /** Recordings of the run; null until they are known. */
  recordings: readonly Summary[] | null;
}

/** The tabs of all recordings, then those of one. Of these, only the open one and those that have data are there. */
export function Tabs({ tabs, recordings }: Props) {
  const open = useViewState((state) => state.tab);
  const shown = tabs.filter((tab) => tab === open || recordingsOf(tab, recordings ?? [])?.length !== 0);
  const firstOfOne = shown.find(isOfOneRecording);
  const focused = shown.includes(open as Tab) ? open : shown[0];
  return (
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown={moveTabFocus}>
      {shown.map((tab) => (
        <button
          key={tab}
          role="tab"
          class={tab === firstOfOne && tab !== shown[0] ? "tab-group" : ""}
          aria-selected={tab === open}
          tabindex={tab === focused ? 0 : -1}
          data-testid={`tab-${tab}`}
          title={aboutTab(tab)}
          onClick={() => openTab(tab, recordings)}
        >
          {tabName(tab, recordings)}
        </button>
      ))}
    </div>
  );
}
