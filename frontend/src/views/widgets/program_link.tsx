import type { ComponentChildren } from "preact";
import { NEW_RECORDING, store } from "../state/view_state";

interface Props {
  /** Title and memory space of the program's recording. */
  title: string;
  memory: string;
  /** Row number of the buffer to select there. */
  row?: number;
  about: string;
  children: ComponentChildren;
}

/** Link from a runtime allocation to the compiled program, of the same run and host. */
export function ProgramLink({ title, memory, row, about, children }: Props) {
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
