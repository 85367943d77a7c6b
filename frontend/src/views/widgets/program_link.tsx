import type { ComponentChildren, JSX } from "preact";
import type { Store } from "../../base/store";
import type { ViewState } from "../state/view_state";
import { NEW_RECORDING } from "../state/view_state";

interface Props {
  /** As the program's recording is called, and which of its memories. */
  title: string;
  memory: string;
  /** Buffer to select there: a row number of its api/rows. */
  row?: number;
  about: string;
  store: Store<ViewState>;
  children: ComponentChildren;
}

/** Leads from what ran to what was compiled: to a program of the same run and host in the Memory Viewer. */
export function ProgramLink({ title, memory, row, about, store, children }: Props): JSX.Element {
  return (
    <button
      class="link"
      data-testid="program-link"
      title={about}
      onClick={() =>
        store.set({
          ...NEW_RECORDING,
          tab: "memory_viewer",
          module: title,
          space: memory,
          search: "",
          selected: row ?? null,
        })
      }
    >
      {children}
    </button>
  );
}
