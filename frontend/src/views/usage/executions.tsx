import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { Store } from "../../base/store";
import { formatBytes, formatCount, formatCounted } from "../../base/units";
import type { Api } from "../../payload/api";
import type { RuntimeToProgram } from "../../payload/generated/answers";
import type { FirstView } from "../../payload/recording/recording";
import { useFetched } from "../data/use_fetched";
import type { ViewState } from "../state/view_state";
import { ProgramLink } from "../widgets/program_link";
import { usePosition } from "../state/use_position";

interface Props {
  api: Api;
  view: FirstView;
  store: Store<ViewState>;
}

/** Programs that ran, the ones running at the inspected event, and the memory that executions allocated. */
export function Executions({ api, view, store }: Props): JSX.Element | null {
  const { id } = view.recording;
  const position = usePosition(store, view);
  const fetched = useFetched(`${id} ${position}`, (_, signal) => api.joins({ id, at: position }, signal));
  // The previous answer stays until the next has loaded, so that stepping through events does not flicker.
  const last = useRef<RuntimeToProgram | null>(null);
  if (fetched.value !== null) last.current = fetched.value;
  const joins = last.current;
  if (joins === null || (joins.programs.length === 0 && joins.executable.allocations === 0)) return null;
  return (
    <section aria-label="Programs that ran" data-testid="executions">
      <header class="section-head">
        <h2>Programs that ran</h2>
        <span class="muted">{summaryOf(joins)}</span>
      </header>
      <ul class="executions">
        {joins.programs.map(({ recording, title, memory, running, allocations, bytes }) => (
          <li key={recording}>
            <ProgramLink {...{ title, memory, store }} about="Open the compiled program">
              {title}
            </ProgramLink>
            <span>{running && <b>running at event {formatCount(joins.at)}</b>}</span>
            <span class="muted">
              {allocations > 0
                ? `${formatCounted(allocations, "allocation")} matched to its planned memory, ${formatBytes(bytes)}`
                : "none of its memory was allocated during the profile"}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function summaryOf({ executable, unjoined }: RuntimeToProgram): string {
  const all = `executions made ${formatCounted(executable.allocations, "allocation")}, ${formatBytes(executable.bytes)} in all`;
  if (unjoined.allocations === 0) return all;
  return `${all}; ${formatCount(unjoined.allocations)} of them, ${formatBytes(unjoined.bytes)}, match no program`;
}
