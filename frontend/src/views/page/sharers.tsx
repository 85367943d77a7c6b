import { formatBytes, formatCount } from "../../base/units";
import type { Details, PlannedAllocation, Sharer } from "../../payload/generated/answers";
import { store } from "../state/view_state";
import { ProgramLink } from "../widgets/links";

/** Occupants listed without scrolling; the list of sharers has all. */
const MAX_OCCUPANTS = 3;

/** Buffers of the same memory that use it after the last use of this one. */
export function Occupants({ details, after }: { details: Details | null; after: number }) {
  const later =
    details?.shares.filter((other) => other.relation === "same buffer" && other.last_used > after) ?? [];
  if (later.length === 0) return null;
  return (
    <ul class="sharers" data-testid="occupants" aria-label="Buffers that use this memory later">
      {later.slice(0, MAX_OCCUPANTS).map(({ row, name, defined, last_used }) => (
        <li key={row}>
          <button class="link" onClick={() => store.set({ selected: row })}>
            {name}
          </button>
          <span class="muted">
            uses it from {formatCount(defined)} to {formatCount(last_used)}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Other buffers in the same bytes, at the same or at another time. */
export function Sharers({ details }: { details: Details }) {
  const groups = new Map<string, Sharer[]>();
  for (const sharer of details.shares)
    groups.set(sharer.relation, [...(groups.get(sharer.relation) ?? []), sharer]);
  const hidden = details.shares_total - details.shares.length;
  return (
    <section>
      <h3>Shares its memory with</h3>
      {details.shares.length === 0 && <p class="muted">No other buffer.</p>}
      {[...groups].map(([relation, sharers]) => (
        <div key={relation}>
          <h4>{relation}</h4>
          <ul class="sharers">
            {sharers.map((sharer) => (
              <li key={sharer.row}>
                <button class="link" onClick={() => store.set({ selected: sharer.row })}>
                  {sharer.name}
                </button>
                <span>{formatBytes(sharer.size_bytes)}</span>
                <span class="muted">
                  {formatCount(sharer.defined)}–{formatCount(sharer.last_used)}
                </span>
              </li>
            ))}
          </ul>
        </div>
      ))}
      {hidden > 0 && <p class="muted">and {formatCount(hidden)} more</p>}
    </section>
  );
}

/** Program that a runtime allocation belongs to, and the buffers planned inside it, each with a link. */
export function PlannedBuffers({ planned }: { planned: PlannedAllocation }) {
  const hidden = planned.buffers_total - planned.buffers.length;
  const { title, memory } = planned;
  return (
    <section>
      <h3>
        Planned by{" "}
        <ProgramLink {...{ title, memory }} about="Open the compiled program">
          {title}
        </ProgramLink>
      </h3>
      <p class="muted">
        Its {planned.kind} memory in {memory}, {formatBytes(planned.size)}
      </p>
      <ul class="sharers">
        {planned.buffers.map((buffer) => (
          <li key={buffer.row}>
            <ProgramLink {...{ title, memory }} row={buffer.row} about={buffer.op_name}>
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
