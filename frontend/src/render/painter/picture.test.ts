import { describe, expect, it } from "vitest";
import { emptyRects } from "../../layout/timeline/rects";
import { makePalette, pixelOf } from "../frame/palette";
import { emptyFrameBuffer, rowAt } from "../frame/raster";
import { blockShapes, escapeXml, textureShapes } from "./picture";

const palette = makePalette(0xffffff, 0xeeeeee, 0xcccccc, [0xff0000]);

describe("escapeXml", () => {
  it("leaves no markup and no character that XML forbids", () => {
    expect(escapeXml(`</text><script>"a" & b\u0000\u001b`)).toBe(
      "&lt;/text&gt;&lt;script&gt;&quot;a&quot; &amp; b\ufffd\ufffd",
    );
  });
});

describe("blockShapes", () => {
  it("draws a block at its place, with its name as title text", () => {
    const rects = emptyRects(1);
    rects.length = 1;
    rects.x0[0] = 1.25;
    rects.x1[0] = 4;
    rects.y1[0] = 2;
    expect(blockShapes(rects, palette, null, () => "<b>")).toEqual([
      '<rect x="1.25" y="0" width="2.75" height="2" fill="#ff0000"><title>&lt;b&gt;</title></rect>',
    ]);
    const [dimmed] = blockShapes(rects, palette, Uint8Array.of(0), () => "");
    expect(dimmed).toContain('fill="#ffd1d1"');
  });
});

describe("textureShapes", () => {
  it("merges runs of one color along a row and leaves out the ground", () => {
    const ground = emptyFrameBuffer(5, 2);
    ground.pixels.fill(pixelOf(0xffffff));
    const texture = emptyFrameBuffer(5, 2);
    texture.pixels.set(ground.pixels);
    texture.pixels.fill(pixelOf(0x402010), 1, 4);
    texture.pixels[9] = pixelOf(0xff0000);
    expect(textureShapes(texture, ground)).toEqual([
      '<path d="M1 0h3v1h-3z" fill="#482818"/>',
      '<path d="M4 1h1v1h-1z" fill="#f80808"/>',
    ]);
    expect(textureShapes(ground, ground)).toEqual([]);
  });
});

describe("rowAt", () => {
  it("finds the block at a pixel, or the nearest one within reach", () => {
    const frame = emptyFrameBuffer(20, 3);
    frame.ids[20 + 4] = 8;
    frame.ids[20 + 5] = 9;
    expect(rowAt(frame, 4.9, 1.2)).toBe(7);
    expect(rowAt(frame, 8, 1)).toBe(8);
    expect(rowAt(frame, 9, 1)).toBe(-1);
    expect(rowAt(frame, -1, 1)).toBe(-1);
  });
});
