import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatBytes, formatExact } from "../../base/units";
import type { FreeRange, Segment } from "../../layout/address_map/address_map";
import { findAtOffset, segmentPieces } from "../../layout/address_map/address_map";
import type { Addresses } from "../../payload/recording/addresses";
import type { Rows } from "../../payload/recording/rows";
import { Tooltip } from "../widgets/tooltip";
import { pageColors } from "../drawing/page_colors";
import { sizedContext } from "../drawing/sized_context";
import type { ViewState } from "../state/view_state";
import { useWidth } from "../browser/use_width";
import { formatAddress, paintPieces, describeSegment, STRIP_HEIGHT } from "./strips";

interface Props {
  segment: Segment;
  rows: Rows;
  places: Addresses;
  /** Bytes of the full width, the same for every segment. */
  span: number;
  store: Store<ViewState>;
  dark: boolean;
}

/** Strip of one segment: chunks in use are filled, gaps are free. */
export function SegmentStrip({ segment, rows, places, span, store, dark }: Props): JSX.Element {
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
