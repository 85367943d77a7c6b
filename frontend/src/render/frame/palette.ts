import { RESERVED } from "../../base/colors";

/** Tints of a role's color. Rows use them in turn, so that neighbors of one role can be distinguished. */
export const SHADES = 4;

/** Share of the background in each tint. */
const TINTS = [0, 0.24, 0.12, 0.36];

/** Share of the background in blocks that do not match the search, in reserved memory, and in the edges of blocks. */
const DIM_SHARE = 0.82;
const RESERVED_SHARE = 0.7;
const EDGE_SHARE = 0.6;

/** Colors as pixels, 0xAABBGGRR. A block uses `fill[colorIndex(...)]`, and `edge` with the same index. */
export interface Palette {
  background: number;
  region: number;
  regionEdge: number;
  fill: Uint32Array;
  edge: Uint32Array;
}

export function colorIndex(role: number, shade: number, dim: boolean): number {
  return (role * SHADES + shade) * 2 + (dim ? 1 : 0);
}

/** Create a palette from 0xRRGGBB colors; `roles` in the order of role numbers. */
export function makePalette(
  background: number,
  region: number,
  regionEdge: number,
  roles: readonly number[],
): Palette {
  const back = pixelOf(background);
  const fill = new Uint32Array((RESERVED + roles.length) * SHADES * 2);
  const edge = new Uint32Array(fill.length);
  roles.forEach((role, number) => {
    TINTS.forEach((tint, shade) => {
      const plain = mixPixels(pixelOf(role), back, tint);
      const dim = mixPixels(plain, back, DIM_SHARE);
      const edges = [mixPixels(plain, back, EDGE_SHARE), mixPixels(dim, back, EDGE_SHARE)];
      fill.set([plain, dim], colorIndex(number, shade, false));
      edge.set(edges, colorIndex(number, shade, false));
      fill.set([mixPixels(plain, back, RESERVED_SHARE), dim], colorIndex(RESERVED + number, shade, false));
      edge.set([plain, edges[1]], colorIndex(RESERVED + number, shade, false));
    });
  });
  return { background: back, region: pixelOf(region), regionEdge: pixelOf(regionEdge), fill, edge };
}

/** Convert 0xRRGGBB to an opaque pixel. */
export function pixelOf(rgb: number): number {
  return (0xff000000 | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >>> 16)) >>> 0;
}

/** Convert a pixel to 0xRRGGBB. */
export function rgbOf(pixel: number): number {
  return ((pixel & 255) << 16) | (pixel & 0xff00) | ((pixel >>> 16) & 255);
}

export function mixPixels(from: number, to: number, share: number): number {
  let mixed = 0xff000000;
  for (let shift = 0; shift < 24; shift += 8) {
    const start = (from >>> shift) & 255;
    const end = (to >>> shift) & 255;
    mixed |= Math.round(start + (end - start) * share) << shift;
  }
  return mixed >>> 0;
}
