import { describe, expect, it } from "vitest";
import { timelineBlocks, regionBands } from "../../layout/timeline/blocks";
import { type View } from "../../layout/axis/span";
import { regionsOf, rowsOf } from "../../layout/timeline/fixture";
import { Painter } from "../painter/painter";
import { makePalette } from "./palette";
import { exposedStrips, findShift, stripView } from "./shift";

const view: View = { x: [100, 200], y: [0, 50] };

describe("findShift", () => {
  it("counts whole pixels to the right and down, and returns the view of the moved picture", () => {
    const shift = findShift(view, { x: [106.1, 206.1], y: [4.9, 54.9] }, 50, 100);
    expect(shift).toEqual({ across: 3, down: -10, view: { x: [106, 206], y: [5, 55] } });
  });

  it("is null if the scale differs or less than half stays visible", () => {
    expect(findShift(view, { x: [100, 201], y: [0, 50] }, 50, 100)).toBeNull();
    expect(findShift(view, { x: [100, 200], y: [0, 51] }, 50, 100)).toBeNull();
    expect(findShift(view, { x: [160, 260], y: [0, 50] }, 50, 100)).toBeNull();
  });
});

describe("exposedStrips", () => {
  it("returns the strips at the side and at the top or bottom", () => {
    const shift = { across: 3, down: -10, view };
    expect(exposedStrips(shift, 50, 100)).toEqual([
      { left: 47, top: 0, width: 3, height: 100 },
      { left: 0, top: 0, width: 50, height: 10 },
    ]);
    expect(stripView(exposedStrips(shift, 50, 100)[1], view, 50, 100)).toEqual({
      x: [100, 200],
      y: [45, 50],
    });
  });
});

describe("a moved picture", () => {
  const palette = makePalette(0xffffff, 0xeeeeee, 0xcccccc, [0xff0000, 0x0000ff]);
  const length = 1 << 17;
  // Consecutive lifetimes, every tenth a long one, over disjoint bytes; scales are powers of two.
  const rows = rowsOf(
    Array.from({ length: 40_000 }, (_, i) => ({
      size: 4 + ((i * 37) % 60),
      role: i % 2,
      defined: i * 3,
      last_used: Math.min(length - 1, i * 3 + (i % 10 === 0 ? 9000 : (i * 53) % 400)),
      offset: ((i * 7919) % 256) * 64,
    })),
  );
  const regions = regionsOf([{ size: 1 << 14, temporary: true }]);
  const painter = new Painter();
  painter.setBlocks(timelineBlocks(rows, regions, length, "all"), regionBands(regions, "all"));
  const order = (x: number, y: number) => ({
    view: { x: [x, x + 32_768], y: [y, y + 8192] } as const,
    width: 256,
    height: 128,
    palette,
    labelWidth: 40,
    labelHeight: 10,
  });

  it.each([
    [384, 0],
    [-2560, 0],
    [0, 640],
    [1280, -192],
  ])("by %i positions and %i bytes equals a newly drawn picture", (across, up) => {
    const { frame } = painter.paint(order(40_960, 4096), null);
    const moved = painter.paint(order(40_960 + across, 4096 + up), frame, false);
    const anew = painter.paint(order(40_960 + across, 4096 + up), null);
    expect(moved.rough).toBe(true);
    expect(moved.frame).toBe(frame);
    expect(moved.blocks).toBeLessThan(anew.blocks / 2);
    let differing = 0;
    anew.frame.pixels.forEach((pixel, i) => (differing += pixel === moved.frame.pixels[i] ? 0 : 1));
    // A border that cuts a block below one pixel is rounded twice, which leaves traces of color in some
    // pixels.
    expect(differing).toBeLessThan(0.01 * 256 * 128);
    expect([...moved.labels.edges]).toEqual([...anew.labels.edges]);
  });

  it("is drawn again after the highlights change", () => {
    const { frame } = painter.paint(order(0, 0), null);
    painter.setHighlighted(new Uint8Array(rows.length));
    expect(painter.paint(order(384, 0), frame, false).rough).toBe(false);
  });
});
