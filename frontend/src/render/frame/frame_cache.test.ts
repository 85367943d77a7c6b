import { describe, expect, it } from "vitest";
import type { View } from "../../layout/axis";
import { regionsOf, rowsOf } from "../../layout/fixture";
import { regionBands, timelineBlocks } from "../../layout/timeline/blocks";
import { Painter } from "../painter/painter";
import type { PaintOrder } from "../painter/picture";
import { exposedStrips, findShift, stripView } from "./frame_cache";
import { makePalette } from "./palette";
import type { FrameBuffer } from "./raster";

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

const palette = makePalette(0xffffff, 0xeeeeee, 0xcccccc, [0xff0000, 0x0000ff]);
const length = 1 << 17;
// Consecutive lifetimes over disjoint bytes, so many that drawing a whole picture takes long.
const rows = rowsOf(
  Array.from({ length: 80_000 }, (_, i) => ({
    size: 64,
    role: i % 2,
    defined: i,
    last_used: Math.min(length - 1, i + ((i * 53) % 9000)),
    offset: ((i * 7919) % 256) * 64,
  })),
);
const regions = regionsOf([{ size: 1 << 14, temporary: true }]);

function painter(): Painter {
  const made = new Painter();
  made.setBlocks(timelineBlocks(rows, regions, length, "all"), regionBands(regions, "all"));
  return made;
}

const order = (from: number, to: number, height = 1 << 14): PaintOrder => ({
  view: { x: [from, to], y: [0, height] },
  width: 256,
  height: 128,
  palette,
  labelWidth: 40,
  labelHeight: 10,
});

describe("a zoomed picture of many blocks", () => {
  const whole = order(0, 65_536);

  it.each([
    ["in", 8192, 57_344, 1 << 14],
    ["in along both axes", 8192, 40_960, 1 << 13],
    ["in twofold", 24_576, 57_344, 1 << 14],
  ])("%s shows each pixel's cached color", (_, from, to, high) => {
    const made = painter();
    const before = made.paint(whole, null).frame;
    const after = made.paint(order(from, to, high), null, false);
    expect(after.rough).toBe(true);
    for (const plane of ["pixels", "ids"] as const) {
      const [old, scaled] = [before[plane], after.frame[plane]];
      let differing = 0;
      for (let y = 0; y < 128; y++)
        for (let x = 0; x < 256; x++) {
          const position = from + ((x + 0.5) / 256) * (to - from);
          const byte = high - ((y + 0.5) / 128) * high;
          const source =
            Math.floor((1 - byte / (1 << 14)) * 128) * 256 + Math.floor((position / 65_536) * 256);
          differing += scaled[y * 256 + x] === old[source] ? 0 : 1;
        }
      expect(differing).toBe(0);
    }
  });

  it("is drawn exactly once the view stops moving", () => {
    const wanted = order(8192, 57_344);
    const made = painter();
    const { frame } = made.paint(
      wanted,
      made.paint(order(4096, 60_000), made.paint(whole, null).frame, false).frame,
      false,
    );
    const exact = made.paint(wanted, frame);
    expect(exact.rough).toBe(false);
    expect(differing(exact.frame, painter().paint(wanted, null).frame)).toBe(0);
  });

  it("out shows the widest picture around the last one", () => {
    const made = painter();
    const wide = made.paint(whole, null).frame;
    const near = made.paint(order(16_384, 49_152), null).frame;
    const { frame, rough } = made.paint(whole, null, false);
    expect(rough).toBe(true);
    const row = 64 * 256;
    for (const x of [0, 30, 63, 192, 255]) expect(frame.ids[row + x]).toBe(wide.ids[row + x]);
    for (const x of [64, 128, 191]) expect(frame.ids[row + x]).toBe(near.ids[row + (x - 64) * 2 + 1]);
  });

  it("out beyond all earlier pictures shows the ground", () => {
    const made = painter();
    made.paint(order(16_384, 49_152), null);
    const { frame, rough } = made.paint(order(8192, 57_344), null, false);
    expect(rough).toBe(true);
    expect([frame.pixels[64 * 256], frame.ids[64 * 256]]).toEqual([palette.region, 0]);
  });

  it.each([
    ["is too far off", order(0, 8192)],
    ["is elsewhere", order(65_536, 131_072)],
    ["is of another size", { ...order(0, 65_536), width: 250 }],
    ["has another ground", { ...whole, palette: { ...palette, background: 1 } }],
  ])("is drawn again where the cached picture %s", (_, wanted) => {
    const made = painter();
    made.paint(whole, null);
    const anew = painter().paint(wanted, null);
    const { frame, rough } = made.paint(wanted, null, false);
    expect(rough).toBe(false);
    expect(differing(frame, anew.frame)).toBe(0);
  });

  it("is drawn again after the highlights change, and where few blocks are visible", () => {
    const made = painter();
    made.paint(order(0, 16_384), null);
    expect(made.paint(order(0, 12_000), null, false).rough).toBe(false);
    made.paint(whole, null);
    made.setHighlighted(new Uint8Array(rows.length));
    expect(made.paint(order(0, 60_000), null, false).rough).toBe(false);
  });
});

function differing(one: FrameBuffer, other: FrameBuffer): number {
  let count = 0;
  one.pixels.forEach(
    (pixel, i) => (count += pixel === other.pixels[i] && one.ids[i] === other.ids[i] ? 0 : 1),
  );
  return count;
}
