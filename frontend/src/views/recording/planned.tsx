import type { JSX } from "preact";
import { formatBytes, formatCount } from "../../base/units";
import type { Planned } from "../../payload/api";

/** The program that a runtime allocation was made for, and the buffers planned inside it. */
export function PlannedBuffers({ planned }: { planned: Planned }): JSX.Element {
  const hidden = planned.buffers_total - planned.buffers.length;
  return (
    <section>
      <h3>Planned by {planned.title}</h3>
      <p class="muted">
        Its {planned.kind} memory in {planned.memory}, {formatBytes(planned.size)}
      </p>
      <ul class="sharers">
        {planned.buffers.map((buffer) => (
          <li key={buffer.row}>
            <span title={buffer.op_name}>{buffer.name}</span>
            <span>{formatBytes(buffer.size)}</span>
          </li>
        ))}
      </ul>
      {hidden > 0 && <p class="muted">and {formatCount(hidden)} more</p>}
    </section>
  );
}
