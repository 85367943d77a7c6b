import { describe, expect, it } from "vitest";
import { pan, restoreSpan, saveSpan, viewAround, zoom } from "../axis";
import { centerOn, dragView, isInside, windowOnMap } from "./minimap";

const limit = [0, 100] as const;
const extent = { x: limit, y: [0, 1000] as const };

describe("pan", () => {
  it("stops at both ends and keeps the scale", () => {
    expect(pan([10, 30], limit, 5)).toEqual([15, 35]);
    expect(pan([10, 30], limit, -50)).toEqual([0, 20]);
    expect(pan([10, 30], limit, 500)).toEqual([80, 100]);
  });
});

describe("zoom", () => {
  it("keeps the value under the pointer in place", () => {
    expect(zoom([0, 100], limit, 25, 0.5, 1)).toEqual([12.5, 62.5]);
    expect(zoom([12.5, 62.5], limit, 25, 2, 1)).toEqual([0, 100]);
  });

  it("stays between the minimum length and the limit", () => {
    expect(zoom([40, 50], limit, 45, 0.01, 4)).toEqual([43, 47]);
    expect(zoom([0, 10], limit, 0, 50, 4)).toEqual([0, 100]);
    expect(zoom([80, 100], limit, 85, 2, 4)).toEqual([60, 100]);
  });

  it("shows an axis shorter than the minimum in full", () => {
    expect(zoom([0, 2], [0, 2], 1, 0.5, 4)).toEqual([0, 2]);
  });
});

describe("viewAround", () => {
  it("puts a block in the middle third", () => {
    expect(viewAround({ start: 40, end: 50, bottom: 400, top: 500 }, extent)).toEqual({
      x: [30, 60],
      y: [300, 600],
    });
    expect(viewAround({ start: 0, end: 1, bottom: 0, top: 1 }, extent)).toEqual({ x: [0, 4], y: [0, 16] });
  });
});

describe("saveSpan and restoreSpan", () => {
  it("save nothing for the full extent", () => {
    expect(saveSpan([0, 100], limit)).toBeNull();
    expect(saveSpan([0, 99], limit)).toEqual([0, 99]);
    expect(saveSpan([100 / 3, 50], limit)).toEqual([33.3333, 50]);
    expect(restoreSpan(null, limit)).toEqual([0, 100]);
  });

  it("show the full extent if the URL contains a window outside the axis", () => {
    expect(restoreSpan([50, 500], limit)).toEqual([50, 100]);
    expect(restoreSpan([200, 300], limit)).toEqual([0, 100]);
    expect(restoreSpan([60, 40], limit)).toEqual([0, 100]);
    expect(restoreSpan([NaN, 40], limit)).toEqual([0, 100]);
  });
});

describe("the minimap's window", () => {
  const view = { x: [25, 75] as const, y: [0, 500] as const };

  it("is where the view is; bytes grow upwards", () => {
    expect(windowOnMap(view, extent, 200, 40)).toEqual({ x: 50, y: 20, width: 100, height: 20 });
  });

  it("stays large enough to drag, and on the map", () => {
    const speck = { x: [99.9, 100] as const, y: [0, 1] as const };
    expect(windowOnMap(speck, extent, 200, 40)).toEqual({ x: 194, y: 34, width: 6, height: 6 });
  });

  it("follows the pointer at the scale of the map", () => {
    expect(dragView(view, extent, 20, -10, 200, 40)).toEqual({ x: [35, 85], y: [250, 750] });
    expect(centerOn(view, extent, 0, 20, 200, 40)).toEqual({ x: [0, 50], y: [250, 750] });
    expect(isInside(windowOnMap(view, extent, 200, 40), 60, 30)).toBe(true);
    expect(isInside(windowOnMap(view, extent, 200, 40), 60, 10)).toBe(false);
  });
});
