import { useContext, useMemo } from "preact/hooks";
import { formatBytes, formatCount, formatCounted } from "../../base/units";
import {
  layoutSegments,
  rowInRegions,
  rowsByEvent,
  type Segment,
  segmentPieces,
  unplacedBytes,
} from "../../layout/address_map";
import { mapByAddress } from "../../layout/stacking/stacking";
import { liveAt } from "../../layout/usage/live_set";
import type { OutOfMemory } from "../../payload/generated/answers";
import type { Addresses, Regions, Rows } from "../../payload/recording/rows";
import { FullWindow } from "../browser/full_window";
import { useTerms } from "../data/terms";
import { type Picture, roleLegend, withLightTheme } from "../drawing/picture";
import { SavePicture } from "../drawing/save_picture";
import { HATCH, hatchDefinition, pageColors, SvgSurface } from "../drawing/surface";
import { LiveHeading, type LiveProps, useLiveRows } from "../page/live_rows";
import { RowFilterContext } from "../page/row_filter";
import { store, usePosition, useViewState } from "../state/view_state";
import { TREE_CHARTS, TreeCharts } from "../trees/tree_charts";
import { Choice } from "../widgets/choice";
import {
  describeSegment,
  formatAddress,
  type MapScene,
  paintSegment,
  SegmentStrip,
  STRIP_HEIGHT,
} from "./segment_strip";

const ADDRESS_WIDTH = 124;
const STRIP_WIDTH = 760;
const DESCRIPTION_WIDTH = 360;
const GAP = 10;
const LINE_HEIGHT = STRIP_HEIGHT + 6;

/** Draw the strips for a file. */
function drawSegments(
  segments: readonly Segment[],
  scene: MapScene,
  wordsOf: (segment: Segment) => string,
): Picture {
  const surface = new SvgSurface();
  const colors = withLightTheme(document.body, pageColors);
  const left = ADDRESS_WIDTH + GAP;
  const scale = STRIP_WIDTH / scene.span;
  segments.forEach((segment, i) => {
    const top = i * LINE_HEIGHT;
    const width = Math.max(segment.size * scale, 2);
    const words = wordsOf(segment);
    surface.fillStyle = colors.muted;
    surface.fillText(formatAddress(segment.address), 0, top + STRIP_HEIGHT / 2);
    surface.fillStyle = HATCH;
    surface.title(words);
    surface.fillRect(left, top, width, STRIP_HEIGHT);
    paintSegment(surface, scene, segment, scale, false, [left, top]);
    surface.strokeStyle = colors.grid;
    surface.strokeRect(left, top, width, STRIP_HEIGHT);
    surface.fillStyle = colors.ink;
    surface.fillText(words, left + STRIP_WIDTH + GAP, top + STRIP_HEIGHT / 2);
  });
  const { rows } = scene;
  const drawn = segments.flatMap((segment) => segmentPieces(segment, rows, scale).map(({ color }) => color));
  const inUse =
    rows.color === rows.role
      ? roleLegend(drawn)
      : [{ color: "", label: "filled: in use, the stronger the larger" }];
  return {
    width: left + STRIP_WIDTH + GAP + DESCRIPTION_WIDTH,
    height: segments.length * LINE_HEIGHT,
    shapes: [hatchDefinition(colors.grid), ...surface.shapes],
    legend: [...inUse, { color: colors.grid, label: "free" }],
  };
}

/** Number of segments drawn, largest first: an allocator can have thousands. */
const MAX_SEGMENTS = 40;

interface Props {
  rows: Rows;
  regions: Regions;
  places: Addresses;
  position: number;
  /** Number of events; 1 for a single moment. */
  length: number;
  outOfMemory: OutOfMemory | null;
  /** Name of saved pictures, without suffix. */
  fileName: string;
}

/**
 * Map of the segments by address on one scale, as they are at the inspected position: blocks in use, awaiting their
 * free, and free, and whether the failed request fits into one of these.
 */
export function AddressMap({ rows, regions, places, position, length, outOfMemory, fileName }: Props) {
  const terms = useTerms();
  const { rows: mask } = useContext(RowFilterContext);
  const rowOfRegion = useMemo(() => rowInRegions(rows, regions), [rows, regions]);
  const events = useMemo(() => (length > 1 ? rowsByEvent(rows, length) : null), [rows, length]);
  const all = useMemo(
    () => layoutSegments(rows, liveAt(rows, position), regions, position),
    [rows, regions, position],
  );
  const unplaced = useMemo(() => unplacedBytes(rows, position), [rows, position]);
  const shown = useMemo(() => {
    const largest = new Set([...all].sort((a, b) => b.size - a.size).slice(0, MAX_SEGMENTS));
    return all.filter((segment) => largest.has(segment));
  }, [all]);
  // Of all segments there ever are, so that the scale stays while the user steps through events.
  const span = useMemo(() => Math.max(regions.size.reduce((a, b) => Math.max(a, b), 1)), [regions]);
  const scene = useMemo(() => ({ rows, position, mask, span }), [rows, position, mask, span]);
  const wordsOf = (segment: Segment): string => {
    const row = rowOfRegion[segment.region];
    const pool = row < 0 || !regions.bounded ? "" : rows.op.at(row) || terms.default_op;
    return describeSegment(segment, pool === "default" ? "default pool" : pool);
  };
  const hole = Math.max(...all.map((segment) => segment.hole.to - segment.hole.from), 0);
  const requested = outOfMemory?.asked_bytes ?? null;
  const waits = all.some(({ awaiting }) => awaiting > 0);
  return (
    <FullWindow of="address map">
      <section aria-label="Address map" class="address-map" data-testid="address-map">
        <header class="section-head">
          <h2>By address</h2>
          <span class="muted">
            {regions.bounded
              ? formatCounted(all.length, "segment")
              : "All addresses that allocations used, without the ranges between"}
            ; filled is in use, {waits && "pale waits for other streams, "}hatched is free.{" "}
            {hole > 0 ? `The largest hole is ${formatBytes(hole)}` : "There are no holes"}
            {requested !== null && `; ${formatBytes(requested)} was requested`}.
          </span>
          <span class="spacer" />
          <SavePicture
            of="address map"
            fileName={fileName}
            draw={() => drawSegments(shown, scene, wordsOf)}
          />
        </header>
        <ol>
          {shown.map((segment) => (
            <SegmentStrip
              key={segment.region}
              {...{ scene, segment, places }}
              words={wordsOf(segment)}
              event={events === null ? -1 : events[position]}
            />
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
    </FullWindow>
  );
}

const ADDRESS_MAP = {
  value: "address",
  label: "Address map",
  about: "Segments by address, with their blocks and free parts. The keys [ and ] step through events",
} as const;

/** Charts of what is live at the inspected position, or in the selected range. They need all rows. */
export function Breakdown({ view, available, program }: LiveProps) {
  const wanted = useViewState((state) => state.chart);
  const { rows, regions, complete } = available;
  const placed = view.recording.axis === "TIME" && (regions?.length ?? 0) > 0;
  const chart = wanted === "address" && !placed ? "flame" : wanted;
  const map = useMemo(
    () =>
      chart === "address" && regions !== null ? mapByAddress(view.recording.kind, { rows, regions }) : null,
    [chart, rows, regions, view],
  );
  const position = usePosition(view);
  const of = useLiveRows({ view, available, program });
  const fileName = `${view.recording.title}-${view.recording.memory}-at-${of.first}`;
  return (
    <section aria-label="Breakdown" data-testid="breakdown">
      <header class="section-head">
        <LiveHeading {...{ view, available, program, of }} testid="live-heading" />
        <span class="spacer" />
        <Choice
          label="Chart"
          testid="chart"
          options={placed ? [...TREE_CHARTS, ADDRESS_MAP] : TREE_CHARTS}
          value={chart}
          onPick={(picked) => store.set({ chart: picked })}
        />
      </header>
      {map !== null ? (
        <AddressMap
          {...{ ...map, fileName }}
          position={position}
          length={view.length}
          places={available.places}
          outOfMemory={null}
        />
      ) : (
        <TreeCharts
          {...{ program, fileName }}
          compiled={view.recording.axis === "PROGRAM_ORDER"}
          rows={complete ? rows : null}
          live={of.filtered}
          unexplained={Math.max(of.unexplainedShown, 0)}
        />
      )}
    </section>
  );
}
