import type { Summary } from "../../payload/generated/answers";
import { recordingsOf, tabName } from "../state/tab_names";
import { TABS } from "../state/view_state";
import { openTab } from "./tabs";

const CONTENTS: Record<string, string> = {
  program: "compiled programs",
  allocator: "allocator events",
  torch_snapshot: "PyTorch snapshots",
  torch_timeline: "PyTorch memory timelines",
  device_profile: "device memory profiles",
  oom: "out-of-memory errors",
  watch: "memory of devices over time",
};

interface Props {
  recordings: readonly Summary[];
}

/** Links to the tabs that have data of the run; nothing where there are none. */
export function TabsWithData({ recordings }: Props) {
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
