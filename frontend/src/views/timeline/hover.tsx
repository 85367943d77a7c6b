import type { JSX } from "preact";
import { formatBytes, formatCount, formatCounted } from "../../base/units";
import { ROLES } from "../../payload/generated/constants";
import { rowName } from "../../payload/recording/rows";
import { formatTime } from "../../layout/axis/ticks";
import { isSharedLater, lifetimeText, liveUntil } from "../widgets/position_text";
import { useTerms, type Terms } from "../data/terms";
import type { Scene } from "./drawing/scene";

/** Tooltip of a block. */
export function BlockFacts({ scene, row }: { scene: Scene; row: number }): JSX.Element {
  const { rows } = scene;
  const terms = useTerms();
  const padding = rows.size[row] - rows.requested[row];
  return (
    <>
      <b>{rowName(rows, row) || `unnamed ${terms.item}`}</b>
      <span>
        {formatBytes(rows.size[row])}
        {padding > 0 && ` (${formatBytes(padding)} ${terms.excess})`}
        {rows.role[row] !== 0 && <span class="muted"> · {ROLES[rows.role[row]]}</span>}
      </span>
      <span>{rows.shape.at(row)}</span>
      <span class="muted">{lifetimeOf(scene, row, terms)}</span>
      {rows.op_name.at(row) !== "" && rows.op_name.at(row) !== rows.name.at(row) && (
        <span>{rows.op_name.at(row)}</span>
      )}
      {rows.source.at(row) !== "" && <span class="muted">{rows.source.at(row)}</span>}
    </>
  );
}

function lifetimeOf({ rows, program, length }: Scene, row: number, terms: Terms): string {
  const [defined, lastUsed] = [rows.defined[row], rows.last_used[row]];
  const from = defined < 0 ? `before the ${terms.extent}` : formatCount(defined);
  const to = lastUsed >= length ? "after its end" : formatCount(lastUsed);
  const positions = Math.min(lastUsed, length - 1) - Math.max(defined, 0) + 1;
  const time = program.time_ns === null ? "" : `, ${lifetimeText(rows, row, program.time_ns)}`;
  // Buffers that share its memory have blocks of their own.
  const longer =
    program.time_ns === null && isSharedLater(rows, row, length)
      ? `, its memory to ${formatCount(liveUntil(rows, row, length))}`
      : "";
  return `lives ${from} to ${to}, ${formatCounted(positions, terms.position, terms.positions)}${longer}${time}`;
}

/** Status line below the plot: instruction and byte under the pointer. */
export function PointerText(props: {
  scene: Scene;
  at: { position: number; byte: number } | null;
  /** The timeline fills the window. */
  full: boolean;
}): JSX.Element {
  const { scene, at, full } = props;
  if (at === null)
    return (
      <span class="muted">
        {full ? "wheel: zoom, with Alt bytes, with Ctrl both" : "Ctrl + wheel: zoom, Alt + wheel: bytes"} · W
        A S D: zoom and pan · drag: pan or select a range · click: select
      </span>
    );
  const position = Math.min(Math.max(Math.floor(at.position), 0), scene.length - 1);
  const { program } = scene;
  const known = position < program.length;
  const times = program.time_ns;
  return (
    <span>
      <span class="muted">at </span>
      {formatCount(position)}
      {times !== null && known && `, ${formatTime(times[position])}`}
      {known && <code> {program.name.at(position)}</code>}
      {known && program.op_name.at(position) !== "" && (
        <span class="muted"> {program.op_name.at(position)}</span>
      )}
      <span class="muted"> · byte {formatBytes(Math.max(at.byte, 0))}</span>
    </span>
  );
}
