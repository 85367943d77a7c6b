import { describe, expect, it } from "vitest";
import type { View } from "../../layout/axis";
import { shorten } from "../drawing/surface";
import { keyView } from "./gestures";

const extent: View = { x: [0, 1000], y: [0, 1000] };
const view: View = { x: [400, 600], y: [400, 600] };

function pressed(
  key: string,
  held: { altKey?: boolean; shiftKey?: boolean; ctrlKey?: boolean } = {},
): View | null {
  const event = { key, altKey: false, shiftKey: false, ctrlKey: false, metaKey: false, ...held };
  return keyView(event as KeyboardEvent, view, extent);
}

describe("keyedView", () => {
  it("moves by an eighth of the picture, up towards higher bytes, with Shift by half", () => {
    expect(pressed("ArrowRight")).toEqual({ x: [425, 625], y: [400, 600] });
    expect(pressed("ArrowUp")).toEqual({ x: [400, 600], y: [425, 625] });
    expect(pressed("ArrowLeft", { shiftKey: true })).toEqual({ x: [300, 500], y: [400, 600] });
    expect(pressed("End")).toEqual({ x: [800, 1000], y: [400, 600] });
  });

  it("zooms along x about the middle, with Alt along y, and 0 shows all", () => {
    expect(pressed("+")).toEqual({ x: [450, 550], y: [400, 600] });
    expect(pressed("-", { altKey: true })).toEqual({ x: [400, 600], y: [300, 700] });
    expect(pressed("0")).toEqual(extent);
  });

  it("leaves other keys, and the browser's own, alone", () => {
    expect(pressed("x")).toBeNull();
    expect(pressed("+", { ctrlKey: true })).toBeNull();
  });
});

describe("shortened", () => {
  it("keeps both ends of a name", () => {
    expect(shorten("fusion.123", 10)).toBe("fusion.123");
    expect(shorten("fusion.123", 7)).toBe("fus…123");
    expect(shorten("fusion.123", 2)).toBe("fu");
    expect(shorten("fusion.123", 0)).toBe("");
  });
});
