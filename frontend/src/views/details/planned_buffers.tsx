import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { formatBytes, formatCount } from "../../base/units";
import type { PlannedAllocation } from "../../payload/generated/answers";
import type { ViewState } from "../state/view_state";
import { ProgramLink } from "../widgets/program_link";

/** Program that a runtime allocation belongs to, and the buffers planned inside it, each with a link. */
export function PlannedBuffers({
  planned,
  store,
}: {
  planned: PlannedAllocation;
  store: Store<ViewState>;
}): JSX.Element {
  const hidden = planned.buffers_total - planned.buffers.length;
  const { title, memory } = planned;
  return (
    <section>
      <h3>
        Planned by{" "}
        <ProgramLink {...{ title, memory, store }} about="Open the compiled program">
          {title}
        </ProgramLink>
      </h3>
      <p class="muted">
        Its {planned.kind} memory in {memory}, {formatBytes(planned.size)}
      </p>
      <ul class="sharers">
        {planned.buffers.map((buffer) => (
          <li key={buffer.row}>
            <ProgramLink {...{ title, memory, store }} row={buffer.row} about={buffer.op_name}>
              {buffer.name}
            </ProgramLink>
            <span>{formatBytes(buffer.size)}</span>
          </li>
        ))}
      </ul>
      {hidden > 0 && <p class="muted">and {formatCount(hidden)} more</p>}
    </section>
  );
}
