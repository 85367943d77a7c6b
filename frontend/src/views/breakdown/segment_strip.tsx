import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { cssColor, rowColors } from "../../base/colors";
import { formatBytes, formatCounted, formatExact, formatShare } from "../../base/units";
import {
  awaitsFree,
  type ByteRange,
  findAtOffset,
  type Segment,
  segmentPieces,
} from "../../layout/address_map";
import type { Addresses, Rows } from "../../payload/recording/rows";
import { useWidth } from "../browser/hooks";
import { pageColors, sizedContext, type Surface } from "../drawing/surface";
import { useDark } from "../state/theme";
import { store, useViewState } from "../state/view_state";
import { Tooltip } from "../widgets/tooltip";

export const STRIP_HEIGHT = 22;
/** Minimum width in pixels for a gap between neighbors of the same color. */
const MIN_GAP_WIDTH = 4;
/** Of chunks whose free waits for other streams, and of rows that the filter leaves out. */
const AWAITING_ALPHA = 0.5;
const FILTERED_ALPHA = 0.15;

/** What all segments of a map have in common. */
export interface MapScene {
  rows: Rows;
  position: number;
  /** 1 for each row that passes the row filter; null for all. */
  mask: Uint8Array | null;
  /** Bytes of the full width. */
  span: number;
}

/** Fill the chunks in use of a segment that starts at (left, top). */
export function paintSegment(
  surface: Surface,
  { rows, position, mask }: MapScene,
  segment: Segment,
  scale: number,
  dark: boolean,
  [left, top]: readonly [number, number] = [0, 0],
): void {
  const palette = rowColors(dark);
  for (const { x, width, color, row } of segmentPieces(segment, rows, scale)) {
    const isLeftOut = mask !== null && row >= 0 && mask[row] === 0;
    const waits = row >= 0 && awaitsFree(rows, row, position);
    surface.globalAlpha = isLeftOut ? FILTERED_ALPHA : waits ? AWAITING_ALPHA : 1;
    surface.fillStyle = cssColor(palette[color]);
    surface.fillRect(left + x, top, width >= MIN_GAP_WIDTH ? width - 1 : width, STRIP_HEIGHT);
  }
  surface.globalAlpha = 1;
}

/** Return an address as text; empty if unknown. */
export function formatAddress(address: number): string {
  return Number.isNaN(address) ? "" : `0x${address.toString(16)}`;
}

/** Return a segment's size, pool, use and largest free part as text. */
export function describeSegment(segment: Segment, pool: string): string {
  const { size, used, awaiting, hole, chunks } = segment;
  const free = hole.to - hole.from;
  const parts = [
    formatBytes(size),
    pool,
    `${formatCounted(chunks.length, "block")}, ${formatShare(used, Math.max(size, 1))} in use`,
    awaiting > 0 && `${formatBytes(awaiting)} awaiting free`,
    free > 0 && `largest hole ${formatBytes(free)}`,
  ];
  return parts.filter(Boolean).join(", ");
}

interface Props {
  scene: MapScene;
  segment: Segment;
  places: Addresses;
  words: string;
  /** Row of the event at the inspected position, or -1. */
  event: number;
}

/** Strip of one segment: chunks in use are filled, gaps are free. */
export function SegmentStrip({ scene, segment, places, words, event: eventRow }: Props) {
  const { rows, span } = scene;
  const { size, chunks } = segment;
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = useDark();
  const full = useWidth(host);
  const width = Math.max((full * size) / span, 2);
  const scale = width / Math.max(size, 1);
  const selected = useViewState((state) => state.selected);
  const hovered = useViewState((state) => state.hovered);
  const [pointer, setPointer] = useState<{ x: number; row: number; hole: ByteRange | null } | null>(null);
  // A freed block is outlined where it was.
  const outlined = useMemo(
    () =>
      [hovered, selected, eventRow].map((row) =>
        row !== null && rows.region[row] === segment.region && rows.offset[row] >= 0 ? row : -1,
      ),
    [segment, rows, hovered, selected, eventRow],
  );
  useLayoutEffect(() => {
    if (full === 0 || canvas.current === null) return;
    const context = sizedContext(canvas.current, width, STRIP_HEIGHT);
    if (context === null) return;
    paintSegment(context, scene, segment, scale, dark);
    const colors = pageColors();
    outlined.forEach((row, i) => {
      if (row < 0) return;
      context.strokeStyle = [colors.muted, colors.ink, colors.accent][i];
      context.lineWidth = 2;
      const wide = Math.max(rows.size[row] * scale, 4);
      context.strokeRect(rows.offset[row] * scale + 1, 1, wide - 2, STRIP_HEIGHT - 2);
    });
  }, [scene, segment, full, width, scale, outlined.join(), dark]);

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
              <Chunk {...{ rows, places }} row={pointer.row} position={scene.position} />
            ) : (
              <b>{formatBytes(pointer.hole.to - pointer.hole.from)} free</b>
            )}
          </Tooltip>
        )}
      </div>
      <span title={words}>{words}</span>
    </li>
  );
}

interface ChunkProps {
  rows: Rows;
  places: Addresses;
  row: number;
  position: number;
}

function Chunk({ rows, places, row, position }: ChunkProps) {
  const names = [rows.op.at(row), rows.name.at(row), rows.source.at(row)].filter(Boolean);
  return (
    <>
      <b>
        {formatBytes(rows.size[row])} {awaitsFree(rows, row, position) ? "awaiting free" : "in use"}
      </b>
      {names.map((name) => (
        <span key={name}>{name}</span>
      ))}
      <span class="muted">
        {formatExact(rows.size[row])} at {formatAddress(places.address(row))}
      </span>
    </>
  );
}
