import { describe, expect, it } from "vitest";
import { regionsOf, rowsOf } from "../../layout/fixture";
import { timelineBlocks } from "../../layout/timeline/blocks";
import { emptyRects, type Rects } from "../../layout/timeline/rects";
import { Painter } from "../painter/painter";
import { colorIndex, makePalette, mixPixels, type Palette, pixelOf, rgbOf } from "./palette";
import { emptyFrameBuffer, type FrameBuffer, Raster } from "./raster";

/** Distinct colors: white page, light gray regions, role 0 red, role 1 blue. */
const palette = makePalette(0xffffff, 0xeeeeee, 0xcccccc, [0xff0000, 0x0000ff]);
const W = pixelOf(0xffffff);
const RED = palette.fill[colorIndex(0, 0, false)];
const EDGE = palette.edge[colorIndex(0, 0, false)];

/** Rectangles of [x0, y0, x1, y1, color, row]. */
function rectsOf(...items: [number, number, number, number, number, number][]): Rects {
  const rects = emptyRects(items.length);
  rects.length = items.length;
  items.forEach(([x0, y0, x1, y1, role, row], i) => {
    rects.x0[i] = x0;
    rects.y0[i] = y0;
    rects.x1[i] = x1;
    rects.y1[i] = y1;
    rects.color[i] = role;
    rects.row[i] = row;
  });
  return rects;
}

function draw(
  rects: Rects,
  width: number,
  height: number,
  highlighted: Uint8Array | null = null,
): FrameBuffer {
  const frame = emptyFrameBuffer(width, height);
  new Raster().draw(frame, rects, new Float64Array(0), palette, highlighted);
  return frame;
}

describe("makePalette", () => {
  it("contains role colors unchanged, as little-endian pixels", () => {
    expect(RED).toBe(0xff0000ff);
    expect(rgbOf(0xff3366cc)).toBe(0xcc6633);
    expect(palette.fill[colorIndex(1, 0, false)]).toBe(0xffff0000);
  });
});

describe("Raster", () => {
  it("fills a block up to whole pixels and records its row", () => {
    const { pixels, ids } = draw(rectsOf([1, 1, 3, 3, 0, 4]), 4, 4);
    // prettier-ignore
    expect([...pixels]).toEqual([
      W, W,   W,   W,
      W, RED, RED, W,
      W, RED, RED, W,
      W, W,   W,   W,
    ]);
    expect([...ids]).toEqual([0, 0, 0, 0, 0, 5, 5, 0, 0, 5, 5, 0, 0, 0, 0, 0]);
  });

  it("draws an edge along the top and right of a block with room for one", () => {
    const { pixels } = draw(rectsOf([0, 1, 4, 5, 0, 0]), 5, 5);
    // prettier-ignore
    expect([...pixels]).toEqual([
      W,    W,    W,    W,    W,
      EDGE, EDGE, EDGE, EDGE, W,
      RED,  RED,  RED,  EDGE, W,
      RED,  RED,  RED,  EDGE, W,
      RED,  RED,  RED,  EDGE, W,
    ]);
  });

  it("draws no edge where a block continues beyond the picture", () => {
    const { pixels } = draw(rectsOf([0, 0, 4, 4, 0, 0]), 4, 4);
    expect(new Set(pixels)).toEqual(new Set([RED]));
  });

  it("leaves neither gap nor overlap between blocks that touch inside a pixel", () => {
    const { ids } = draw(rectsOf([0, 0, 1.4, 1, 0, 0], [1.4, 0, 3.6, 1, 0, 1], [3.6, 0, 5, 1, 0, 2]), 5, 1);
    expect([...ids]).toEqual([1, 2, 2, 2, 3]);
  });

  it("blends a block below one pixel by the share it covers, with a minimum", () => {
    const { pixels, ids } = draw(
      rectsOf([1.25, 0, 1.75, 1, 0, 0], [3.2, 0.4, 3.200001, 0.400001, 0, 4]),
      5,
      1,
    );
    // 0.35 + 0.65 * 0.5 of red over white leaves 255 * (1 - 0.675) of green and blue; 1 / 1024 leaves 165.6.
    expect([...pixels]).toEqual([W, 0xff5353ff, W, 0xffa6a6ff, W]);
    expect([...ids]).toEqual([0, 1, 0, 5, 0]);
  });

  it("gives a pixel the mean color of its blocks", () => {
    const { pixels } = draw(rectsOf([0, 0, 0.5, 1, 0, 0], [0.5, 0, 1, 1, 1, 4]), 1, 1);
    expect([...pixels]).toEqual([0xff800080]);
  });

  it("draws a thin long lifetime over its whole length, and nothing beside it", () => {
    const { pixels, ids } = draw(rectsOf([2, 1.1, 6, 1.2, 0, 0]), 8, 3);
    const drawn = [...pixels].map((pixel) => (pixel === W ? 0 : 1));
    // prettier-ignore
    expect(drawn).toEqual([
      0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 1, 1, 1, 1, 0, 0,
      0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    expect([...ids].map((id) => Math.sign(id))).toEqual(drawn);
  });

  it("keeps a large block's pixels when a small one shares them, in either order", () => {
    const large: [number, number, number, number, number, number] = [0, 0, 2, 2, 0, 7];
    const small: [number, number, number, number, number, number] = [1.1, 1.1, 1.2, 1.2, 1, 8];
    expect([...draw(rectsOf(large, small), 2, 2).ids]).toEqual([8, 8, 8, 8]);
    expect([...draw(rectsOf(small, large), 2, 2).ids]).toEqual([8, 8, 8, 8]);
  });

  it("dims blocks that do not match the search", () => {
    const { pixels } = draw(
      rectsOf([0, 0, 1, 1, 0, 0], [1, 0, 2, 1, 0, 4]),
      2,
      1,
      Uint8Array.of(1, 0, 0, 0, 0),
    );
    expect([...pixels]).toEqual([RED, palette.fill[colorIndex(0, 0, true)]]);
  });

  it("clears the previous picture", () => {
    const raster = new Raster();
    const frame = emptyFrameBuffer(3, 2);
    const none = new Float64Array(0);
    raster.draw(frame, rectsOf([0, 0, 3, 0.5, 0, 0], [1, 0, 2, 2, 0, 1]), none, palette, null);
    raster.draw(frame, emptyRects(0), none, palette, null);
    expect([...frame.pixels]).toEqual(new Array<number>(6).fill(W));
    expect([...frame.ids]).toEqual(new Array<number>(6).fill(0));
  });

  it("paints regions below the blocks", () => {
    const frame = emptyFrameBuffer(1, 6);
    new Raster().draw(frame, emptyRects(0), Float64Array.of(1, 5, 5, 6), palette, null);
    const region = pixelOf(0xeeeeee);
    expect([...frame.pixels]).toEqual([W, pixelOf(0xcccccc), region, region, region, region]);
  });
});

describe("100,000 blocks of one byte in 1000 x 300 pixels", () => {
  const COUNT = 100_000;
  const GiB = 1024 ** 3;
  const width = 1000;
  const height = 300;

  function pictureOf(offset: (i: number) => number, size: number, roles: Palette): FrameBuffer {
    const buffers = Array.from({ length: COUNT }, (_, i) => ({
      size: 1,
      role: 0,
      defined: i,
      last_used: i,
      offset: offset(i),
    }));
    const regions = regionsOf([{ size, temporary: true }]);
    const painter = new Painter();
    painter.setBlocks(timelineBlocks(rowsOf(buffers), regions, COUNT, "temp"), new Float64Array(0));
    const view = { x: [0, COUNT] as const, y: [0, size] as const };
    const order = { view, width, height, palette: roles, labelWidth: 40, labelHeight: 12 };
    return painter.paint(order, null).frame;
  }

  it("are drawn as texture: the pixel of every block is drawn and belongs to a block, and no other is", () => {
    const byteOf = (i: number): number => ((i * 7919) % COUNT) * 42_949;
    const size = 4 * GiB;
    const { pixels, ids } = pictureOf(byteOf, size, palette);
    const expected = new Uint8Array(width * height);
    for (let i = 0; i < COUNT; i++) {
      const y = Math.floor(((size - byteOf(i) - 0.5) / size) * height);
      expected[y * width + Math.floor((i + 0.5) / (COUNT / width))] = 1;
    }
    const drawn = Uint8Array.from(pixels, (pixel) => (pixel === W ? 0 : 1));
    expect(drawn.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(70_000);
    expect(Buffer.compare(drawn, expected)).toBe(0);
    expect(
      Buffer.compare(
        Uint8Array.from(ids, (id) => Math.sign(id)),
        expected,
      ),
    ).toBe(0);
  });

  it("are one even line if all of them are at the bottom of a large region", () => {
    const { pixels } = pictureOf(() => 0, 64 * GiB, palette);
    expect(new Set(pixels.subarray(0, 299 * width))).toEqual(new Set([W]));
    const line = new Set(pixels.subarray(299 * width));
    expect(line.size).toBe(1);
    const [pixel] = line;
    // 100 blocks of weight 1 / 1024 each: 0.35 + 0.65 * 100 / 1024 of the mean of the four tints.
    const tints = [0, 1, 2, 3].map((shade) => (palette.fill[colorIndex(0, shade, false)] >>> 8) & 255);
    const mean = tints.reduce((sum, tint) => sum + tint, 0) / 4;
    const share = 0.35 + (0.65 * 100) / 1024;
    expect((pixel >>> 8) & 255).toBe(Math.round(255 + (mean - 255) * share));
    expect(pixel).not.toBe(mixPixels(W, RED, 0));
  });
});
