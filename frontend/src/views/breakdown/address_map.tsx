import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { cssColor, rowColors } from "../../base/colors";
import { useStore } from "../../base/store";
import { formatBytes, formatCount, formatCounted, formatExact, formatShare } from "../../base/units";
import {
  findAtOffset,
  type FreeRange,
  layoutSegments,
  type Segment,
  type SegmentPiece,
  segmentPieces,
  unplacedBytes,
} from "../../layout/address_map";
import type { OutOfMemory } from "../../payload/generated/answers";
import type { Addresses, Regions, Rows } from "../../payload/recording/rows";
import { useWidth } from "../browser/use_size";
import { type Picture, roleLegend, withLightTheme } from "../drawing/picture";
import { SavePicture } from "../drawing/save_picture";
import {
  HATCH,
  hatchDefinition,
  pageColors,
  sizedContext,
  type Surface,
  SvgSurface,
} from "../drawing/surface";
import type { ViewProps } from "../state/view_state";
import { Tooltip } from "../widgets/tooltip";

const STRIP_HEIGHT = 22;
/** Minimum width in pixels for a gap between neighbors of the same color. */
const MIN_GAP_WIDTH = 4;

/** Fill the chunks in use of a segment that starts at (left, top). */
function paintPieces(
  surface: Surface,
  drawn: readonly SegmentPiece[],
  dark: boolean,
  left: number,
  top: number,
): void {
  const palette = rowColors(dark);
  for (const { x, width, color: color } of drawn) {
    surface.fillStyle = cssColor(palette[color]);
    surface.fillRect(left + x, top, width >= MIN_GAP_WIDTH ? width - 1 : width, STRIP_HEIGHT);
  }
}

/** Return an address as text; empty if unknown. */
function formatAddress(address: number): string {
  return Number.isNaN(address) ? "" : `0x${address.toString(16)}`;
}

/** Return a segment's size, use and largest hole as text. */
function describeSegment({ size, used, hole }: Segment): string {
  const free = hole.to - hole.from;
  return (
    `${formatBytes(size)}, ${formatShare(used, Math.max(size, 1))} in use` +
    (free > 0 ? `, largest hole ${formatBytes(free)}` : "")
  );
}

const ADDRESS_WIDTH = 124;
const STRIP_WIDTH = 760;
const DESCRIPTION_WIDTH = 280;
const GAP = 10;
const LINE_HEIGHT = STRIP_HEIGHT + 6;

/** Draw the strips for a file; `span` bytes take the full width. */
function drawSegments(segments: readonly Segment[], rows: Rows, span: number): Picture {
  const surface = new SvgSurface();
  const colors = withLightTheme(document.body, (holder) => {
    const style = getComputedStyle(holder);
    const read = (name: string): string => style.getPropertyValue(name).trim();
    return { ink: read("--ink"), muted: read("--muted"), line: read("--line") };
  });
  const left = ADDRESS_WIDTH + GAP;
  const scale = STRIP_WIDTH / span;
  segments.forEach((segment, i) => {
    const top = i * LINE_HEIGHT;
    const width = Math.max(segment.size * scale, 2);
    surface.fillStyle = colors.muted;
    surface.fillText(formatAddress(segment.address), 0, top + STRIP_HEIGHT / 2);
    surface.fillStyle = HATCH;
    surface.title(describeSegment(segment));
    surface.fillRect(left, top, width, STRIP_HEIGHT);
    paintPieces(surface, segmentPieces(segment, rows, scale), false, left, top);
    surface.strokeStyle = colors.line;
    surface.strokeRect(left, top, width, STRIP_HEIGHT);
    surface.fillStyle = colors.ink;
    surface.fillText(describeSegment(segment), left + STRIP_WIDTH + GAP, top + STRIP_HEIGHT / 2);
  });
  const drawn = segments.flatMap((segment) => segmentPieces(segment, rows, scale).map(({ color }) => color));
  const inUse =
    rows.color === rows.role ? roleLegend(drawn) : [{ color: "", label: "In use: one color per size." }];
  return {
    width: left + STRIP_WIDTH + GAP + DESCRIPTION_WIDTH,
    height: segments.length * LINE_HEIGHT,
    shapes: [hatchDefinition(colors.line), ...surface.shapes],
    legend: [...inUse, { color: colors.line, label: "free" }],
  };
}

interface SegmentStripProps extends ViewProps {
  segment: Segment;
  rows: Rows;
  places: Addresses;
  /** Bytes of the full width, the same for every segment. */
  span: number;
}

/** Strip of one segment: chunks in use are filled, gaps are free. */
function SegmentStrip({ segment, rows, places, span, store, dark }: SegmentStripProps): JSX.Element {
  const { size, chunks } = segment;
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const full = useWidth(host);
  const width = Math.max((full * size) / span, 2);
  const scale = width / Math.max(size, 1);
  const selected = useStore(store, (state) => state.selected);
  const hovered = useStore(store, (state) => state.hovered);
  const [pointer, setPointer] = useState<{ x: number; row: number; hole: FreeRange | null } | null>(null);
  const drawn = useMemo(() => segmentPieces(segment, rows, scale), [segment, rows, scale]);

  useLayoutEffect(() => {
    if (full === 0 || canvas.current === null) return;
    const context = sizedContext(canvas.current, width, STRIP_HEIGHT);
    if (context === null) return;
    paintPieces(context, drawn, dark, 0, 0);
    const colors = pageColors();
    for (const [row, color] of [
      [hovered, colors.muted],
      [selected, colors.ink],
    ] as const) {
      if (row === null || !chunks.includes(row)) continue;
      context.strokeStyle = color;
      context.lineWidth = 2;
      const wide = Math.max(rows.size[row] * scale, 4);
      context.strokeRect(rows.offset[row] * scale + 1, 1, wide - 2, STRIP_HEIGHT - 2);
    }
  }, [drawn, full, width, scale, hovered, selected, dark]);

  const point = (event: MouseEvent): void => {
    const found = findAtOffset(segment, rows, event.offsetX / scale);
    setPointer({ x: event.offsetX, ...found });
    store.set({ hovered: found.row < 0 ? null : found.row });
  };
  const leave = (): void => {
    setPointer(null);
    store.set({ hovered: null });
  };
  const step = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || chunks.length === 0) return;
    event.preventDefault();
    const place = selected === null ? -1 : chunks.indexOf(selected);
    store.set({ selected: chunks[Math.min(Math.max(place + by, 0), chunks.length - 1)] });
  };
  const words = describeSegment(segment);
  return (
    <li class="segment">
      <code class="muted">{formatAddress(segment.address)}</code>
      <div
        ref={host}
        class="segment-host"
        tabindex={0}
        role="application"
        aria-label={`Segment of ${words}. Left and right arrows select the next chunk.`}
        data-testid="segment"
        onKeyDown={step}
      >
        <canvas
          ref={canvas}
          style={{ width: `${width}px`, height: `${STRIP_HEIGHT}px` }}
          onMouseMove={point}
          onMouseLeave={leave}
          onClick={() => pointer !== null && pointer.row >= 0 && store.set({ selected: pointer.row })}
        />
        {pointer !== null && (
          <Tooltip x={pointer.x} y={STRIP_HEIGHT + 6} width={full}>
            {pointer.hole === null ? (
              <Chunk rows={rows} places={places} row={pointer.row} />
            ) : (
              <b>{formatBytes(pointer.hole.to - pointer.hole.from)} free</b>
            )}
          </Tooltip>
        )}
      </div>
      <span>{words}</span>
    </li>
  );
}

function Chunk({ rows, places, row }: { rows: Rows; places: Addresses; row: number }): JSX.Element {
  return (
    <>
      <b>{formatBytes(rows.size[row])} in use</b>
      {rows.op.at(row) !== "" && <span>{rows.op.at(row)}</span>}
      <span class="muted">
        {formatExact(rows.size[row])} at {formatAddress(places.address(row))}
      </span>
    </>
  );
}

/** Number of segments drawn, largest first: an allocator can have thousands. */
const MAX_SEGMENTS = 24;

interface Props extends ViewProps {
  rows: Rows;
  regions: Regions;
  places: Addresses;
  /** Rows to draw. */
  live: Uint32Array;
  position: number;
  outOfMemory: OutOfMemory | null;
  /** Name of saved pictures, without suffix. */
  fileName: string;
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
          ; filled is in use, a color for each {rows.color === rows.role ? "role" : "size"}; hatched is free.{" "}
          {hole > 0 ? `The largest hole is ${formatBytes(hole)}` : "There are no holes"}
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
