import { describe, expect, it } from "vitest";
import { compileSearch } from "./search";

describe("compileSearch", () => {
  it("matches a regular expression and ignores case", () => {
    const { matches, error } = compileSearch("layer_\\d+/MLP");
    expect(error).toBeNull();
    expect(matches("jit(step)/layer_12/mlp/dot")).toBe(true);
    expect(matches("jit(step)/layer_x/mlp/dot")).toBe(false);
  });

  it("matches plain text that contains special characters", () => {
    expect(compileSearch("fusion.3{0}").matches("fusion.3{0}")).toBe(true);
    expect(compileSearch("p[1][0]").matches("p[1][0]")).toBe(true);
  });

  it("reports an invalid expression and searches for it as plain text", () => {
    const { matches, error } = compileSearch("f32[4096");
    expect(error).toMatch(/character class/i);
    expect(matches("F32[4096,4096]{1,0}")).toBe(true);
    expect(matches("f32[8]")).toBe(false);
  });

  it("matches everything when empty", () => {
    expect(compileSearch("")).toMatchObject({ empty: true, error: null });
    expect(compileSearch("").matches("anything")).toBe(true);
  });
});
