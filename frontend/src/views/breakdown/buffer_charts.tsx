import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { cssColor, inkOn, rowColors } from "../../base/colors";
import { useStore } from "../../base/store";
import { formatBytes, formatCount, formatShare } from "../../base/units";
import { type BarOrder, barSegments, bufferAt, type BufferBar, bufferBar } from "../../layout/usage/live_set";
import { ROLES } from "../../payload/generated/constants";
import type { Rows } from "../../payload/recording/rows";
import { useWidth } from "../browser/use_size";
import { type Terms, useTerms } from "../data/terms";
import type { AvailableRows } from "../data/use_recording";
import { fitText, type PageColors, pageColors, sizedContext } from "../drawing/surface";
import type { ViewProps } from "../state/view_state";
import { Tooltip } from "../widgets/tooltip";

/** Minimum width in pixels for a gap between neighbors of the same color. */
const MIN_GAP_WIDTH = 4;
const MIN_LABEL_WIDTH = 56;

interface BarPicture {
  bar: BufferBar;
  rows: Rows;
  /** Index into `rows`, or -1. */
  selected: number;
  hovered: number;
  dark: boolean;
  width: number;
  height: number;
}

/** Draw a bar of buffers, colored by role, with names if there is room. */
function drawBar(canvas: HTMLCanvasElement, picture: BarPicture, colors: PageColors): void {
  const { bar, rows, width, height, dark } = picture;
  const context = sizedContext(canvas, width, height);
  if (context === null) return;
  context.font = "11px system-ui, sans-serif";
  const palette = rowColors(dark);
  for (const { x, width: wide, color, row } of barSegments(bar, rows, width)) {
    const filled = wide >= MIN_GAP_WIDTH ? wide - 1 : wide;
    context.fillStyle = cssColor(palette[color]);
    context.fillRect(x, 0, filled, height);
    if (row < 0 || wide < MIN_LABEL_WIDTH) continue;
    context.fillStyle = inkOn(palette[color]);
    context.fillText(fitText(context, rows.name.at(row), wide - 10), x + 5, height / 2 + 0.5);
  }
  outline(context, picture, picture.hovered, colors.muted, 1.5);
  outline(context, picture, picture.selected, colors.ink, 2.5);
}

function outline(
  context: CanvasRenderingContext2D,
  { bar, width, height }: BarPicture,
  row: number,
  color: string,
  line: number,
): void {
  const place = row < 0 ? -1 : bar.rows.indexOf(row);
  if (place < 0) return;
  const scale = width / bar.edges[bar.rows.length];
  const x = bar.edges[place] * scale;
  const wide = Math.max((bar.edges[place + 1] - bar.edges[place]) * scale, 4);
  context.strokeStyle = color;
  context.lineWidth = line;
  context.strokeRect(x + line / 2, line / 2, Math.max(wide - line, 1), height - line);
}

const HEIGHT = 34;

const BARS: readonly { order: BarOrder; label: (terms: Terms) => string; about: string }[] = [
  { order: "program", label: (terms: Terms) => `By ${terms.order}`, about: "first on the left" },
  { order: "size", label: () => "By size", about: "largest on the left" },
  {
    order: "padding",
    label: (terms: Terms) => `By ${terms.excess}`,
    about: "bytes of each beyond the requested ones, most on the left",
  },
];

interface Props extends ViewProps {
  available: AvailableRows;
  live: Uint32Array;
}

/** Bars of the buffers live at the inspected position: in program order, by size and by padding. */
export function BufferCharts(props: Props): JSX.Element {
  const { rows } = props.available;
  // By recording, not by position: stepping through positions must not move the page.
  const padded = useMemo(() => rows.charge.some((_, row) => rows.charge[row] > rows.requested[row]), [rows]);
  return (
    <div class="buffer-charts">
      {BARS.filter(({ order }) => order !== "padding" || padded).map((bar) => (
        <BarOfBuffers key={bar.order} {...props} {...bar} />
      ))}
    </div>
  );
}

function BarOfBuffers(props: Props & (typeof BARS)[number]): JSX.Element {
  const { available, live, store, dark, order, about } = props;
  const { rows } = available;
  const terms = useTerms();
  const label = props.label(terms);
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(host);
  const selected = available.indexOf(useStore(store, (state) => state.selected));
  const hovered = available.indexOf(useStore(store, (state) => state.hovered));
  const bar = useMemo(() => bufferBar(rows, live, order), [rows, live, order]);
  const total = bar.edges[bar.rows.length];
  const [pointer, setPointer] = useState<number | null>(null);

  useLayoutEffect(() => {
    if (canvas.current === null || width === 0) return;
    drawBar(canvas.current, { bar, rows, selected, hovered, dark, width, height: HEIGHT }, pageColors());
  }, [bar, rows, selected, hovered, dark, width]);

  const placeAt = (event: MouseEvent): number => bufferAt(bar, (event.offsetX / width) * total);
  const point = (event: MouseEvent): void => {
    const place = placeAt(event);
    setPointer(place < 0 ? null : event.offsetX);
    store.set({ hovered: place < 0 ? null : available.numberOf(bar.rows[place]) });
  };
  const leave = (): void => {
    setPointer(null);
    store.set({ hovered: null });
  };
  const step = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || bar.rows.length === 0) return;
    event.preventDefault();
    const place = Math.min(Math.max(bar.rows.indexOf(selected) + by, 0), bar.rows.length - 1);
    store.set({ selected: available.numberOf(bar.rows[place]) });
  };

  return (
    <div class="buffer-bar">
      <header>
        <h3>{label}</h3>
        <span class="muted">{total > 0 ? `${about}; ${formatBytes(total)}` : `no ${terms.excess} here`}</span>
      </header>
      <div
        ref={host}
        class={total > 0 ? "buffer-bar-host" : "buffer-bar-host empty"}
        tabindex={0}
        role="application"
        aria-label={
          `${label}: ${formatCount(bar.rows.length)} ${terms.items}. ` +
          "Left and right arrows select the next one."
        }
        data-testid={`bar-${order}`}
        style={{ height: `${HEIGHT}px` }}
        onKeyDown={step}
      >
        <canvas
          ref={canvas}
          onMouseMove={point}
          onMouseLeave={leave}
          onClick={(event) => {
            const place = placeAt(event);
            if (place >= 0) store.set({ selected: available.numberOf(bar.rows[place]) });
          }}
        />
        {pointer !== null && hovered >= 0 && (
          <Tooltip x={pointer} y={HEIGHT + 6} width={width}>
            <b>{rows.name.at(hovered) || `unnamed ${terms.item}`}</b>
            {rows.op_name.at(hovered) !== "" && <span>{rows.op_name.at(hovered)}</span>}
            <span>
              {formatBytes(rows.size[hovered])}, {formatShare(rows.charge[hovered], total)} of this bar
              {rows.role[hovered] !== 0 && `, ${ROLES[rows.role[hovered]]}`}
            </span>
            <span class="muted">{rows.shape.at(hovered)}</span>
          </Tooltip>
        )}
      </div>
    </div>
  );
}
