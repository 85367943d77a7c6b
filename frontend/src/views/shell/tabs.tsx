import { moveTabFocus } from "../../base/input";
import type { Summary } from "../../payload/generated/answers";
import { aboutTab, isOfOneRecording, recordingsOf, tabName } from "../state/tabs";
import { NEW_RECORDING, store, type Tab, TABS, useViewState } from "../state/view_state";

/**
 * Go to another tab of the same run, and of the same host if that has data there. The selection is reset, as it means
 * nothing there.
 */
function openTab(tab: Tab, recordings: readonly Summary[] | null): void {
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

const CONTENTS: Record<string, string> = {
  program: "compiled programs",
  allocator: "allocator events",
  torch_snapshot: "PyTorch snapshots",
  torch_timeline: "PyTorch memory timelines",
  device_profile: "device memory profiles",
  oom: "out-of-memory errors",
  watch: "memory of devices over time",
};

/** Links to the tabs that have data of the run; nothing where there are none. */
export function TabsWithData({ recordings }: { recordings: readonly Summary[] }) {
  const found = TABS.flatMap((tab) => {
    const kinds = new Set(recordingsOf(tab, recordings)?.map(({ kind }) => kind));
    return kinds.size > 0 ? [{ tab, contents: [...kinds].map((kind) => CONTENTS[kind] ?? kind) }] : [];
  });
  if (found.length === 0) return null;
  return (
    <p class="tabs-with-data" data-testid="tabs-with-data">
      This run has{" "}
      {found.map(({ tab, contents }, i) => (
        <span key={tab}>
          {i > 0 && (i === found.length - 1 ? " and " : ", ")}
          {contents.join(" and ")} in{" "}
          <button
            class="link"
            data-testid={`to-${tab.replace("_", "-")}`}
            onClick={() => openTab(tab, recordings)}
          >
            {tabName(tab, recordings)}
          </button>
        </span>
      ))}
      .
    </p>
  );
}
