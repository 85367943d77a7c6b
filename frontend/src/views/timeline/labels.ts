import { formatBytes } from "../../base/units";
import type { Labels } from "../../render/painter";

/** Least room for a label, in CSS pixels: five letters and their line. */
export const LABEL_WIDTH = 44;
export const LABEL_HEIGHT = 14;

const LINE = 13;
const PADDING = 4;
/** A fixed pitch, so that what fits is known without measuring each name. */
const FONT = "11px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace";

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
  ctx.font = FONT;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  pitch ||= ctx.measureText("m".repeat(100)).width / 100;
  rows.forEach((row, i) => {
    const [x0, y0, x1, y1] = edges.subarray(i * 4, i * 4 + 4).map((edge) => edge / ratio);
    const letters = Math.floor((x1 - x0 - 2 * PADDING) / pitch);
    const { name, bytes, ink } = labelOf(row);
    ctx.fillStyle = ink;
    const high = y1 - y0 >= 2 * LINE + PADDING;
    const top = high ? y0 + PADDING : (y0 + y1 - LINE) / 2 + 1;
    ctx.fillText(shortened(name, letters), x0 + PADDING, top);
    if (!high) return;
    ctx.globalAlpha = 0.75;
    ctx.fillText(shortened(formatBytes(bytes), letters), x0 + PADDING, top + LINE);
    ctx.globalAlpha = 1;
  });
  ctx.restore();
}

/** The end of a name is what differs between neighbours ("fusion.3" and "fusion.4"), so the middle goes. */
export function shortened(text: string, letters: number): string {
  if (text.length <= letters) return text;
  if (letters < 3) return text.slice(0, Math.max(letters, 0));
  const head = Math.ceil((letters - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (letters - 1 - head))}`;
}
