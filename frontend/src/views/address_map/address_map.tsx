import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { formatBytes, formatCount, formatCounted } from "../../base/units";
import { layoutSegments } from "../../layout/address_map/address_map";
import { unplacedBytes } from "../../layout/address_map/holes";
import type { Addresses } from "../../payload/recording/addresses";
import type { Regions } from "../../payload/recording/regions";
import type { Rows } from "../../payload/recording/rows";
import type { OutOfMemory } from "../../payload/generated/answers";
import { SavePicture } from "../drawing/save_picture";
import type { ViewState } from "../state/view_state";
import { SegmentStrip } from "./segment_strip";
import { drawSegments } from "./strips";

/** Number of segments drawn, largest first: an allocator can have thousands. */
const MAX_SEGMENTS = 24;

interface Props {
  rows: Rows;
  regions: Regions;
  places: Addresses;
  /** Rows to draw. */
  live: Uint32Array;
  position: number;
  outOfMemory: OutOfMemory | null;
  /** Name of saved pictures, without suffix. */
  fileName: string;
  store: Store<ViewState>;
  dark: boolean;
}

/** Map of the segments by address on one scale, with the holes and whether the failed request fits into one. */
export function AddressMap(props: Props): JSX.Element {
  const { rows, regions, places, live, position, outOfMemory, fileName, store, dark } = props;
  const all = useMemo(
    () => layoutSegments(rows, live, regions, position, places),
    [rows, live, regions, position, places],
  );
  const unplaced = useMemo(() => unplacedBytes(rows, position), [rows, position]);
  const shown = useMemo(() => {
    const largest = [...all].sort((a, b) => b.size - a.size).slice(0, MAX_SEGMENTS);
    const largestSet = new Set(largest);
    return all.filter((segment) => largestSet.has(segment));
  }, [all]);
  const span = Math.max(...shown.map(({ size }) => size), 1);
  const hole = Math.max(...all.map((segment) => segment.hole.to - segment.hole.from), 0);
  const requested = outOfMemory?.asked_bytes ?? null;
  return (
    <section aria-label="Address map" class="address-map" data-testid="address-map">
      <header class="section-head">
        <h2>By address</h2>
        <span class="muted">
          {regions.bounded
            ? formatCounted(all.length, "segment")
            : "All addresses that allocations used, without the ranges between"}
          ; filled is in use, a color for each {rows.color === rows.role ? "category" : "size"}; hatched is
          free. {hole > 0 ? `The largest hole is ${formatBytes(hole)}` : "There are no holes"}
          {requested !== null && `; ${formatBytes(requested)} was requested`}.
        </span>
        <span class="spacer" />
        <SavePicture of="address map" fileName={fileName} draw={() => drawSegments(shown, rows, span)} />
      </header>
      <ol>
        {shown.map((segment, i) => (
          <SegmentStrip key={i} {...{ segment, rows, places, span, store, dark }} />
        ))}
      </ol>
      {unplaced > 0 && (
        <p class="muted">
          {formatBytes(unplaced)} are live at unknown addresses, which may be in the free parts here.
        </p>
      )}
      {all.length > shown.length && (
        <p class="muted">
          {formatCount(all.length - shown.length)} smaller segments are not drawn; the table has all chunks.
        </p>
      )}
    </section>
  );
}
