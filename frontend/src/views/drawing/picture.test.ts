import { describe, expect, it } from "vitest";
import { plainColor, svgText } from "./picture";

describe("a picture", () => {
  it("has colors that every program knows", () => {
    expect(plainColor("color(srgb 1 0.5 0)")).toBe("rgb(255, 128, 0)");
    expect(plainColor("color(srgb 0.2 1.2 -0.1 / 0.5)")).toBe("rgb(51, 255, 0)");
    expect(plainColor("color(srgb 0 0 0 / 0)")).toBe("none");
    expect(plainColor("rgba(0, 0, 0, 0)")).toBe("none");
    for (const kept of ["rgb(1, 2, 3)", "none", "11px"]) expect(plainColor(kept)).toBe(kept);
  });

  it("is a file of its own, with a margin, on a light ground", () => {
    const text = svgText({ width: 100.2, height: 50, shapes: ['<rect id="a"/>'] });
    expect(text).toContain('width="117" height="66" viewBox="0 0 117 66"');
    expect(text).toContain('<rect width="100%" height="100%" fill="#ffffff"/>');
    expect(text.indexOf('<rect id="a"/>')).toBeGreaterThan(text.indexOf("translate(8 8)"));
  });
});
