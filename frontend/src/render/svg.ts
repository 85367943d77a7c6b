import type { Rects } from "../layout/timeline";
import { colourIndex, type Palette, rgbOf, SHADES } from "./palette";
import type { Frame } from "./raster";

/** Without control characters, which have no place in XML, not even escaped. */
export function withoutControls(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
}

/** Text as it may stand in XML: names come from profiles and may hold anything. */
export function escapeXml(text: string): string {
  return withoutControls(text)
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}

const cssOf = (pixel: number): string => `#${rgbOf(pixel).toString(16).padStart(6, "0")}`;

const round = (value: number): number => Math.round(value * 100) / 100;

/** Runs of one colour along the rows of the texture, where it differs from the ground, as shapes of one pixel height. */
export function textureShapes(texture: Frame, ground: Frame): string[] {
  const { width, height, pixels } = texture;
  const shapes: string[] = [];
  for (let y = 0; y < height; y++) {
    let x = 0;
    while (x < width) {
      const from = x;
      const colour = coarse(pixels[y * width + x]);
      const drawn = pixels[y * width + x] !== ground.pixels[y * width + x];
      do x += 1;
      while (
        x < width &&
        coarse(pixels[y * width + x]) === colour &&
        (pixels[y * width + x] !== ground.pixels[y * width + x]) === drawn
      );
      if (drawn) shapes.push(`<path d="M${from} ${y}h${x - from}v1h${from - x}z" fill="${cssOf(colour)}"/>`);
    }
  }
  return shapes;
}

/** Sixteen steps per channel: finer ones would make a shape of each pixel. */
function coarse(pixel: number): number {
  return (pixel & 0xfff0f0f0) | 0x080808;
}

/** Blocks as shapes, each with its title for those who point at it. */
export function blockShapes(
  rects: Rects,
  palette: Palette,
  lit: Uint8Array | null,
  titleOf: (row: number) => string,
): string[] {
  const shapes: string[] = [];
  for (let i = 0; i < rects.length; i++) {
    const row = rects.row[i];
    const colour = colourIndex(rects.role[i], row % SHADES, lit !== null && lit[row] === 0);
    const [x, y] = [round(rects.x0[i]), round(rects.y0[i])];
    const [width, height] = [round(rects.x1[i] - rects.x0[i]), round(rects.y1[i] - rects.y0[i])];
    const edge =
      width >= 4 && height >= 4 ? ` stroke="${cssOf(palette.edge[colour])}" stroke-width=".5"` : "";
    shapes.push(
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${cssOf(palette.fill[colour])}"${edge}>` +
        `<title>${escapeXml(titleOf(row))}</title></rect>`,
    );
  }
  return shapes;
}
