import { bench, describe } from "vitest";
import type { View } from "../src/layout/axis";
import { regionsOf, rowsOf } from "../src/layout/fixture";
import { regionBands, timelineBlocks } from "../src/layout/timeline/blocks";
import { makePalette } from "../src/render/frame/palette";
import type { FrameBuffer } from "../src/render/frame/raster";
import { Painter } from "../src/render/painter/painter";
import type { PaintOrder } from "../src/render/painter/picture";

/** Benchmark of the painter without a browser: `npx vitest bench`. */
const palette = makePalette(
  0xffffff,
  0xeeeeee,
  0xcccccc,
  Array.from({ length: 11 }, (_, i) => 0x102030 * i),
);

/**
 * Lifetimes as in a training step: most are short, some span a large part of the step. Sizes span six
 * decades.
 */
function painterOf(count: number): { painter: Painter; whole: View } {
  let seed = 1;
  const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const size = 2 ** 36;
  const buffers = Array.from({ length: count }, () => {
    const defined = Math.floor(random() * count);
    const life = Math.floor(random() < 0.8 ? random() * 20 : random() ** 4 * count);
    const bytes = Math.floor(2 ** (8 + 20 * random()));
    return {
      size: bytes,
      role: Math.floor(random() * 11),
      defined,
      last_used: Math.min(count - 1, defined + life),
      offset: Math.floor(random() * (size - bytes)),
    };
  });
  const regions = regionsOf([{ size, temporary: true }]);
  const painter = new Painter();
  painter.setBlocks(timelineBlocks(rowsOf(buffers), regions, count, "all"), regionBands(regions, "all"));
  return { painter, whole: { x: [0, count], y: [0, size] } };
}

for (const count of [100_000, 500_000]) {
  const { painter, whole } = painterOf(count);
  describe(`${count} blocks`, () => {
    for (const [width, height] of [
      [1000, 300],
      [1920, 1000],
    ]) {
      let frame: FrameBuffer | null = null;
      const paint = (view: View): void => {
        const order: PaintOrder = { view, width, height, palette, labelWidth: 44, labelHeight: 13 };
        frame = painter.paint(order, frame).frame;
      };
      bench(`all, ${width} x ${height}`, () => paint(whole), { time: 1000, iterations: 5 });
      const part: View = { x: [count * 0.4, count * 0.42], y: whole.y };
      bench(`a fiftieth of the axis, ${width} x ${height}`, () => paint(part), { time: 500 });
    }
  });
}
