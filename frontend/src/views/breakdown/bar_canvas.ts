import { cssColor, inkOn, rowColors } from "../../base/colors";
import type { BufferBar } from "../../layout/usage/buffer_bar";
import { barSegments } from "../../layout/usage/buffer_bar";
import type { Rows } from "../../payload/recording/rows";
import { fitText } from "../drawing/fit_text";
import type { PageColors } from "../drawing/page_colors";
import { sizedContext } from "../drawing/sized_context";

/** Minimum width in pixels for a gap between neighbors of the same color. */
const MIN_GAP_WIDTH = 4;
const MIN_LABEL_WIDTH = 56;

export interface BarPicture {
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
export function drawBar(canvas: HTMLCanvasElement, picture: BarPicture, colors: PageColors): void {
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
