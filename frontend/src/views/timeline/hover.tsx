import { formatBytes, formatCount } from "../../base/units";
import type { Hole } from "../../layout/address_map";
import { formatTime } from "../../layout/axis/ticks";
import { rowName } from "../../payload/recording/rows";
import { useTerms } from "../data/terms";
import type { Scene } from "./drawing/scene";
import { HoleText } from "./holes";

/** What is under the pointer. */
export interface Pointed {
  position: number;
  byte: number;
  /** A row, also one of live bytes that no table lists; -1 for none. */
  row: number;
  hole: Hole | null;
}

/** Status line below the plot: what is under the pointer. */
export function PointerText(props: {
  scene: Scene;
  at: Pointed | null;
  /** The charts fill the window. */
  full: boolean;
}) {
  const { scene, at, full } = props;
  const terms = useTerms();
  if (at === null)
    return (
      <span class="muted">
        {full ? "Wheel" : "Ctrl + wheel"}: zoom · drag: pan or zoom, on the axis select a range · click: keep
        in the panel
      </span>
    );
  const position = Math.min(Math.max(Math.floor(at.position), 0), scene.length - 1);
  const { program } = scene;
  const known = position < program.length;
  const times = program.time_ns;
  const { rows } = scene;
  return (
    <span>
      {at.row >= 0 && (
        <b>
          {rowName(rows, at.row) || `unnamed ${terms.item}`}, {formatBytes(rows.size[at.row])}{" "}
        </b>
      )}
      {at.hole !== null && <HoleText scene={scene} hole={at.hole} />}
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
