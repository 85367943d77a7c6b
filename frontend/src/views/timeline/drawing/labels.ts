import { formatBytes } from "../../../base/units";
import type { Labels } from "../../../render/painter/picture";

/** Least room for a label, in CSS pixels: five letters and their line. */
export const LABEL_WIDTH = 44;
export const LABEL_HEIGHT = 11;

const LINE = 13;
const PADDING = 4;
/** Letters of this size and, where a block is too low for them, of the least that can be read. */
const LARGE = 11;
const SMALL = 9;
/** A fixed pitch, so that what fits is known without measuring each name. */
const FAMILY = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/** Width of a letter of one pixel height. */
let pitch = 0;

interface Label {
  name: string;
  bytes: number;
  ink: string;
}

/** Writes the name of each block in its top left corner, and its size below where there is room for that too. */
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

/** The end of a name is what differs between neighbors ("fusion.3" and "fusion.4"), so the middle goes. */
export function shorten(text: string, letters: number): string {
  if (text.length <= letters) return text;
  if (letters < 3) return text.slice(0, Math.max(letters, 0));
  const head = Math.ceil((letters - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (letters - 1 - head))}`;
}
