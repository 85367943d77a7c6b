import { useMemo } from "preact/hooks";
import { formatBytes, formatCount, formatCounted, formatExact } from "../../base/units";
import { type Hole, holesAt, unplacedBytes } from "../../layout/address_map";
import { MIN_BYTES, saveSpan, spanAround } from "../../layout/axis";
import { rowName } from "../../payload/recording/rows";
import { store, useViewState } from "../state/view_state";
import type { Scene } from "./drawing/scene";

const MAX_LISTED = 50;
const EDGE = "the edge of the segment";

/** Holes between live allocations at the inspected event, and the allocations that pin each. */
export function Holes({ scene }: { scene: Scene }) {
  const position = useViewState((state) => state.position) ?? scene.peak;
  const selected = useViewState((state) => state.selected);
  const holes = useMemo(() => holesAt(scene.rows, scene.regions, position), [scene, position]);
  const unplaced = useMemo(() => unplacedBytes(scene.rows, position), [scene, position]);
  const bytes = holes.reduce((sum, { from, to }) => sum + to - from, 0);
  return (
    <details class="holes" data-testid="holes">
      <summary>
        {formatCounted(holes.length, "hole")} at event {formatCount(position)}
        {holes.length > 0 &&
          `: ${formatBytes(bytes)} free${scene.regions.bounded ? "" : " between allocations"}, ` +
            `${formatBytes(holes[0].to - holes[0].from)} in the largest`}
      </summary>
      {!scene.regions.bounded && (
        <p class="muted">
          Address ranges that no allocation of the profile ever used are neither drawn nor counted. The curves
          of the largest free block and of fragmentation include them if the allocator reports them.
        </p>
      )}
      {unplaced > 0 && (
        <p class="muted">
          {formatBytes(unplaced)} were live before the recording at unknown addresses, which may be inside
          these holes.
        </p>
      )}
      <ul>
        {holes.slice(0, MAX_LISTED).map((hole) => (
          <Line key={hole.from} {...{ hole, scene, selected }} />
        ))}
      </ul>
      {holes.length > MAX_LISTED && (
        <p class="muted">and {formatCount(holes.length - MAX_LISTED)} smaller ones</p>
      )}
    </details>
  );
}

function Line({ hole, scene, selected }: { hole: Hole; scene: Scene; selected: number | null }) {
  const { from, to } = hole;
  const neighbor = (row: number) =>
    row < 0 ? (
      <span class="muted">{EDGE}</span>
    ) : (
      <button
        class="link"
        aria-pressed={row === selected}
        title={nameOf(scene, row)}
        data-testid="hole-neighbor"
        onClick={() => store.set({ selected: row })}
        onMouseEnter={() => store.set({ hovered: row })}
        onMouseLeave={() => store.set({ hovered: null })}
      >
        {nameOf(scene, row)}
      </button>
    );
  return (
    <li data-testid="hole">
      <button
        class="link"
        title={`${formatExact(to - from)}. Click to zoom to it`}
        onClick={() =>
          store.set({
            timeline_zoom: saveSpan(spanAround(from, to, scene.extent.y, MIN_BYTES), scene.extent.y),
          })
        }
      >
        {formatBytes(to - from)}
      </button>
      <span>
        <span class="muted">below</span>
        {neighbor(hole.above)}
      </span>
      <span>
        <span class="muted">above</span>
        {neighbor(hole.below)}
      </span>
    </li>
  );
}

/** A hole, and the allocations around it, in a line. */
export function HoleText({ hole, scene }: { hole: Hole; scene: Scene }) {
  return (
    <>
      <b>Hole of {formatBytes(hole.to - hole.from)}</b> below {nameOf(scene, hole.above)}, above{" "}
      {nameOf(scene, hole.below)}{" "}
    </>
  );
}

function nameOf({ rows }: Scene, row: number): string {
  if (row < 0) return EDGE;
  const name = rowName(rows, row) || "unnamed allocation";
  return `${name}, ${formatBytes(rows.size[row])}`;
}
