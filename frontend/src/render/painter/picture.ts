import type { View } from "../../layout/axis";
import { emptyRects, RECT_COLUMNS, type Rects } from "../../layout/timeline/rects";
import { colorIndex, type Palette, rgbOf, SHADES } from "../frame/palette";
import type { FrameBuffer } from "../frame/raster";

/** Replace control characters, which XML forbids even as escapes. */
export function replaceControls(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
}

/** Escape text for XML: names from profiles are untrusted. */
export function escapeXml(text: string): string {
  return replaceControls(text)
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}

const cssOf = (pixel: number): string => `#${rgbOf(pixel).toString(16).padStart(6, "0")}`;

const round = (value: number): number => Math.round(value * 100) / 100;

/**
 * Return runs of one color along the rows of the texture, where it differs from the ground, as shapes of one
 * pixel height.
 */
export function textureShapes(texture: FrameBuffer, ground: FrameBuffer): string[] {
  const { width, height, pixels } = texture;
  const shapes: string[] = [];
  for (let y = 0; y < height; y++) {
    let x = 0;
    while (x < width) {
      const from = x;
      const color = quantizeColor(pixels[y * width + x]);
      const drawn = pixels[y * width + x] !== ground.pixels[y * width + x];
      do x += 1;
      while (
        x < width &&
        quantizeColor(pixels[y * width + x]) === color &&
        (pixels[y * width + x] !== ground.pixels[y * width + x]) === drawn
      );
      if (drawn) shapes.push(`<path d="M${from} ${y}h${x - from}v1h${from - x}z" fill="${cssOf(color)}"/>`);
    }
  }
  return shapes;
}

/** Quantize each channel to sixteen levels. Finer levels would make a shape of each pixel. */
function quantizeColor(pixel: number): number {
  return (pixel & 0xfff0f0f0) | 0x080808;
}

/** Return blocks as shapes, each with a title that appears on hover. */
export function blockShapes(
  rects: Rects,
  palette: Palette,
  highlighted: Uint8Array | null,
  titleOf: (row: number) => string,
): string[] {
  const shapes: string[] = [];
  for (let i = 0; i < rects.length; i++) {
    const row = rects.row[i];
    const color = colorIndex(rects.color[i], row % SHADES, highlighted !== null && highlighted[row] === 0);
    const [x, y] = [round(rects.x0[i]), round(rects.y0[i])];
    const [width, height] = [round(rects.x1[i] - rects.x0[i]), round(rects.y1[i] - rects.y0[i])];
    const edge = width >= 4 && height >= 4 ? ` stroke="${cssOf(palette.edge[color])}" stroke-width=".5"` : "";
    shapes.push(
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${cssOf(palette.fill[color])}"${edge}>` +
        `<title>${escapeXml(titleOf(row))}</title></rect>`,
    );
  }
  return shapes;
}

/** A request for a picture: the view, the size in pixels, and the minimum room for a label. */
export interface PaintOrder {
  view: View;
  width: number;
  height: number;
  palette: Palette;
  labelWidth: number;
  labelHeight: number;
}

/** Rectangles with room for a label: row numbers, and left, top, right, bottom in pixels. */
export interface Labels {
  rows: Int32Array;
  edges: Float32Array;
}

export interface Picture {
  frame: FrameBuffer;
  labels: Labels;
  /** The view that the picture shows: the requested view, or for a moved picture, the nearest one in whole pixels. */
  view: View;
  /** Whether the picture was moved, scaled or drawn in fewer columns. An exact one should follow. */
  rough: boolean;
  /** Number of blocks drawn. */
  blocks: number;
}

/**
 * A picture in parts for vector graphics: blocks large enough to be shapes, a texture of all others below
 * them, and the ground without blocks.
 */
export interface VectorParts {
  shapes: Rects;
  texture: FrameBuffer;
  ground: FrameBuffer;
}

/** Return whether a label's place shows its block, not one drawn later in the same memory. */
export function isLabelVisible(
  rects: Rects,
  i: number,
  labelWidth: number,
  { width, ids }: FrameBuffer,
): boolean {
  const x = Math.floor(rects.x0[i] + labelWidth / 2);
  const y = Math.floor((rects.y0[i] + rects.y1[i]) / 2);
  return ids[y * width + x] === rects.row[i] + 1;
}

export function pickLabels(rects: Rects, chosen: number[]): Labels {
  const rows = new Int32Array(chosen.length);
  const edges = new Float32Array(chosen.length * 4);
  chosen.forEach((i, label) => {
    rows[label] = rects.row[i];
    edges.set([rects.x0[i], rects.y0[i], rects.x1[i], rects.y1[i]], label * 4);
  });
  return { rows, edges };
}

export function selectRects(rects: Rects, keep: (i: number) => boolean): Rects {
  const kept = emptyRects(rects.length);
  for (let i = 0; i < rects.length; i++) {
    if (!keep(i)) continue;
    const to = kept.length++;
    for (const column of RECT_COLUMNS) kept[column][to] = rects[column][i];
  }
  return kept;
}
