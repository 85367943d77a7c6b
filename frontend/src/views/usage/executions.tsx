import { formatBytes, formatCount, formatCounted, formatExact } from "../../base/units";
import type { Api } from "../../payload/api";
import type { RuntimeToProgram, Stack as StackOfProgram } from "../../payload/generated/answers";
import type { FirstView } from "../../payload/recording/recording";
import { useLastFetched } from "../data/use_fetched";
import { usePosition } from "../state/view_state";
import { ProgramLink } from "../widgets/links";

/** Programs listed at first. */
const MAX_LISTED = 12;

/** Programs that ran, the ones running at the inspected event, and the memory that executions allocated. */
export function Executions({ api, view }: { api: Api; view: FirstView }) {
  const { id } = view.recording;
  const position = usePosition(view);
  const { value: joins } = useLastFetched(`${id} ${position}`, (_, signal) =>
    api.joins({ id, at: position }, signal),
  );
  if (joins === null || (joins.programs.length === 0 && joins.executable.allocations === 0)) return null;
  return (
    <section aria-label="Programs that ran" data-testid="executions">
      <header class="section-head">
        <h2>Programs that ran</h2>
        <span class="muted">{summaryOf(joins)}</span>
      </header>
      {joins.stack !== null && <Stack stack={joins.stack} />}
      <Programs joins={joins} from={0} to={MAX_LISTED} />
      {joins.programs.length > MAX_LISTED && (
        <details>
          <summary>{formatCounted(joins.programs.length - MAX_LISTED, "more program")}</summary>
          <Programs joins={joins} from={MAX_LISTED} to={joins.programs.length} />
        </details>
      )}
    </section>
  );
}

function Programs({ joins, from, to }: { joins: RuntimeToProgram; from: number; to: number }) {
  return (
    <ul class="executions">
      {joins.programs
        .slice(from, to)
        .map(({ recording, title, memory, running, runs, allocations, bytes }) => (
          <li key={recording}>
            <ProgramLink {...{ title, memory }} about="Open the compiled program">
              {title}
            </ProgramLink>
            <span>{running && <b>running at event {formatCount(joins.at)}</b>}</span>
            <span class="muted">
              {runs !== null && runs > 0 && (runs === 1 ? "ran once, " : `ran ${formatCount(runs)} times, `)}
              {allocations > 0
                ? `${formatCounted(allocations, "allocation")} matched to its planned memory, ${formatBytes(bytes)}`
                : "no allocation of its own"}
            </span>
          </li>
        ))}
    </ul>
  );
}

/** On TPU a program's temporaries are not allocated: the runtime reserves them as stack. */
function Stack({ stack }: { stack: StackOfProgram }) {
  const { bytes, title, memory, temporary_bytes: temporary } = stack;
  return (
    <p
      data-testid="stack-of-program"
      title={`Stack ${formatExact(bytes)}, temporaries ${formatExact(temporary)}`}
    >
      {formatBytes(bytes)} stack = temporaries of{" "}
      <ProgramLink {...{ title, memory }} about="Open the program whose temporaries are in the stack">
        {title}
      </ProgramLink>
    </p>
  );
}

function summaryOf({ executable, unjoined }: RuntimeToProgram): string {
  if (executable.allocations === 0) return "";
  const made = formatCounted(executable.allocations, "allocation");
  const all = `executions made ${made}, ${formatBytes(executable.bytes)} in all`;
  if (unjoined.allocations === 0) return all;
  const match = unjoined.allocations === 1 ? "matches" : "match";
  return `${all}; ${formatCount(unjoined.allocations)} of them, ${formatBytes(unjoined.bytes)}, ${match} no program`;
}
