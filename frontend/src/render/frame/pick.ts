import type { FrameBuffer } from "./raster";

/** Maximum distance of the pointer from a block in pixels: a block of one pixel is hard to hit. */
const REACH = 3;

/** Return the row of the block at a pixel, or of the nearest block within reach; -1 if there is none. */
export function rowAt({ width, height, ids }: FrameBuffer, x: number, y: number): number {
  const column = Math.floor(x);
  const line = Math.floor(y);
  if (column < 0 || line < 0 || column >= width || line >= height) return -1;
  let found = 0;
  let nearest = Infinity;
  for (let i = Math.max(line - REACH, 0); i <= Math.min(line + REACH, height - 1); i++)
    for (let j = Math.max(column - REACH, 0); j <= Math.min(column + REACH, width - 1); j++) {
      const id = ids[i * width + j];
      const distance = (i - line) ** 2 + (j - column) ** 2;
      if (id !== 0 && distance < nearest) {
        found = id;
        nearest = distance;
      }
    }
  return found - 1;
}
