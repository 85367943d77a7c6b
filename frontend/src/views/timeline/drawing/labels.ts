import { formatBytes } from "../../../base/units";
import type { Labels } from "../../../render/painter/picture";
import { shorten } from "../../drawing/surface";

/** Minimum size for a label in CSS pixels: one line of five characters. */
export const LABEL_WIDTH = 44;
export const LABEL_HEIGHT = 11;

const LINE = 13;
const PADDING = 4;
/** Font sizes: the usual one, and the smallest readable one for low blocks. */
const LARGE = 11;
const SMALL = 9;
/** A monospaced font, so that names need no measuring. */
const FAMILY = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/** Character width per pixel of font size. */
let pitch = 0;

/** The label of a block. */
export interface Label {
  name: string;
  bytes: number;
  ink: string;
}

/** Draw each block's name in its top left corner, and its size below if there is room. */
export function drawLabels(
  ctx: CanvasRenderingContext2D,
  { rows, edges }: Labels,
  ratio: number,
  labelOf: (row: number) => Label,
): void {
  ctx.save();
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.font = `${LARGE}px ${FAMILY}`;
  pitch ||= ctx.measureText("m".repeat(100)).width / 100 / LARGE;
  rows.forEach((row, i) => {
    const [x0, y0, x1, y1] = edges.subarray(i * 4, i * 4 + 4).map((edge) => edge / ratio);
    const height = y1 - y0;
    const font = height >= LINE ? LARGE : SMALL;
    const letters = Math.floor((x1 - x0 - 2 * PADDING) / (pitch * font));
    const { name, bytes, ink } = labelOf(row);
    ctx.font = `${font}px ${FAMILY}`;
    ctx.fillStyle = ink;
    const twoLines = height >= 2 * LINE + PADDING;
    const middle = twoLines ? y0 + PADDING + LINE / 2 : (y0 + y1) / 2 + 0.5;
    ctx.fillText(shorten(name, letters), x0 + PADDING, middle);
    if (!twoLines) return;
    ctx.globalAlpha = 0.75;
    ctx.fillText(shorten(formatBytes(bytes), letters), x0 + PADDING, middle + LINE);
    ctx.globalAlpha = 1;
  });
  ctx.restore();
}
