import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { formatBytes } from "../../base/units";
import type { Api } from "../../payload/api";
import { useFetched } from "../data/use_fetched";
import { openRecording } from "../state/open_recording";
import type { ViewState } from "../state/view_state";

interface Props {
  api: Api;
  id: string;
  store: Store<ViewState>;
}

/** Links from an error without buffers to the program that it names, where the logdir has a dump of it. */
export function FailedProgram({ api, id, store }: Props): JSX.Element | null {
  const { value } = useFetched(id, (key, signal) => api.failedProgram({ id: key }, signal));
  if (value === null || value.programs.length === 0) return null;
  return (
    <ul class="oom-hints" aria-label="Dumps of the program" data-testid="failed-program">
      {value.programs.map((program) => (
        <li key={program.id}>
          A dump contains the buffers:{" "}
          <button
            class="link"
            title="Open the compiled program"
            onClick={() => openRecording(store, program)}
          >
            {program.title}
          </button>
          , {formatBytes(program.reserved_bytes ?? program.peak_bytes)} of {program.memory}, in {program.run}
        </li>
      ))}
    </ul>
  );
}
