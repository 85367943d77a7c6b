import type { JSX } from "preact";
import { formatBytes, formatCount } from "../../base/units";
import { ROLES } from "../../payload/recording";
import type { Scene } from "./scene";

/** What a block is, in the tooltip. */
export function BlockFacts({ scene, row }: { scene: Scene; row: number }): JSX.Element {
  const { rows } = scene;
  const padding = rows.size[row] - rows.unpadded[row];
  return (
    <>
      <b>{rows.name.at(row)}</b>
      <span>
        {formatBytes(rows.size[row])}
        {padding > 0 && ` (${formatBytes(padding)} padding)`}
        <span class="muted"> · {ROLES[rows.role[row]]}</span>
      </span>
      <span>{rows.shape.at(row)}</span>
      <span class="muted">{lifeOf(scene, row)}</span>
      {rows.op_name.at(row) !== "" && <span>{rows.op_name.at(row)}</span>}
      {rows.source.at(row) !== "" && <span class="muted">{rows.source.at(row)}</span>}
    </>
  );
}

function lifeOf({ rows, length }: Scene, row: number): string {
  const [defined, lastUsed] = [rows.defined[row], rows.last_used[row]];
  const from = defined < 0 ? "before the program" : formatCount(defined);
  const to = lastUsed >= length ? "after its end" : formatCount(lastUsed);
  const positions = Math.min(lastUsed, length - 1) - Math.max(defined, 0) + 1;
  return `lives ${from} to ${to}, ${formatCount(positions)} position${positions === 1 ? "" : "s"}`;
}

/** What is under the pointer in words, below the plot: instruction and byte. */
export function Under(props: { scene: Scene; at: { position: number; byte: number } | null }): JSX.Element {
  const { scene, at } = props;
  if (at === null)
    return (
      <span class="muted">
        wheel to zoom, Alt for bytes, Ctrl for both · drag to mark or to move · click to select
      </span>
    );
  const position = Math.min(Math.max(Math.floor(at.position), 0), scene.length - 1);
  const { program } = scene;
  const known = position < program.length;
  return (
    <span>
      <span class="muted">at </span>
      {formatCount(position)}
      {known && <code> {program.name.at(position)}</code>}
      {known && program.op_name.at(position) !== "" && (
        <span class="muted"> {program.op_name.at(position)}</span>
      )}
      <span class="muted"> · byte {formatBytes(Math.max(at.byte, 0))}</span>
    </span>
  );
}
