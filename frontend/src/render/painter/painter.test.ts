import { describe, expect, it } from "vitest";
import { regionsOf, rowsOf } from "../../layout/fixture";
import { regionBands, timelineBlocks } from "../../layout/timeline/blocks";
import { colorIndex, makePalette, pixelOf } from "../frame/palette";
import { handleRequest, requestTransfers } from "../workers/protocol";
import { Painter } from "./painter";
import type { PaintOrder } from "./picture";

const palette = makePalette(0xffffff, 0xeeeeee, 0xcccccc, [0xff0000]);

/**
 * Three blocks: a large one, one that shares the right half of its memory, and one of a single byte above.
 */
const rows = rowsOf([
  { size: 50, defined: 0, last_used: 9, offset: 0, role: 0 },
  { size: 50, defined: 5, last_used: 9, offset: 0, role: 0, canonical: 0 },
  { size: 1, defined: 2, last_used: 2, offset: 90, role: 0 },
]);
const regions = regionsOf([{ size: 100, temporary: true }]);
const order: PaintOrder = {
  view: { x: [0, 10], y: [0, 100] },
  width: 100,
  height: 50,
  palette,
  labelWidth: 20,
  labelHeight: 10,
};

function painter(): Painter {
  const made = new Painter();
  made.setBlocks(timelineBlocks(rows, regions, 10, "temp"), regionBands(regions, "temp"));
  return made;
}

describe("Painter", () => {
  it("labels visible blocks, in pixels of the picture", () => {
    const { labels, blocks } = painter().paint(order, null);
    expect(blocks).toBe(3);
    expect([...labels.rows]).toEqual([0, 1]);
    expect([...labels.edges]).toEqual([0, 25, 100, 50, 50, 25, 100, 50]);
  });

  it("leaves out the label of a block that another one covers there", () => {
    const { labels } = painter().paint({ ...order, view: { x: [5, 10], y: [0, 100] } }, null);
    expect([...labels.rows]).toEqual([1]);
  });

  it("draws into the given frame buffer if it has the right size", () => {
    const made = painter();
    const { frame } = made.paint(order, null);
    expect(made.paint(order, frame).frame).toBe(frame);
    expect(made.paint({ ...order, width: 99 }, frame).frame).not.toBe(frame);
  });

  it("splits a picture into shapes, texture and ground", () => {
    const { shapes, texture, ground } = painter().paintParts(order);
    expect([...shapes.row.subarray(0, shapes.length)]).toEqual([0, 1]);
    const differing = [...texture.pixels].flatMap((pixel, i) => (pixel === ground.pixels[i] ? [] : [i]));
    // The block of one byte: position 2 is pixels 20 to 29, byte 90 is half of row 4.
    expect(differing).toEqual(Array.from({ length: 10 }, (_, i) => 4 * 100 + 20 + i));
    expect(ground.pixels[4 * 100]).toBe(pixelOf(0xeeeeee));
  });

  it("dims rows that are not highlighted, until everything is highlighted", () => {
    const made = painter();
    const pixelAt = (): number => made.paint(order, null).frame.pixels[40 * 100 + 10];
    made.setHighlighted(Uint8Array.of(0, 1, 1));
    expect(pixelAt()).toBe(palette.fill[colorIndex(0, 0, true)]);
    made.setHighlighted(null);
    expect(pixelAt()).toBe(palette.fill[colorIndex(0, 0, false)]);
  });
});

describe("handleRequest", () => {
  it("paints the given blocks and transfers memory instead of copying", () => {
    const made = new Painter();
    const blocks = timelineBlocks(rows, regions, 10, "temp");
    const request = { kind: "blocks", blocks, bands: new Float64Array(0) } as const;
    expect(requestTransfers(request)).toContain(blocks.row.buffer);
    expect(handleRequest(made, request)).toBeNull();
    const reply = handleRequest(made, { kind: "paint", place: "map", order, reuse: null, exact: true });
    expect(reply).toMatchObject({ kind: "picture", place: "map", picture: { blocks: 3 } });
  });
});
