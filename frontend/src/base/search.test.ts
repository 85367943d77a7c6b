import { describe, expect, it } from "vitest";
import { compileSearch, hasWords, isLinear, plainSearch } from "./search";

describe("hasWords", () => {
  it("takes words in any order", () => {
    expect(hasWords("train_7B/2026_11_22", "7b  train")).toBe(true);
    expect(hasWords("train_7B/2026_11_22", "7b eval")).toBe(false);
    expect(hasWords("train", "")).toBe(true);
  });
});

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

describe("a search that may take long", () => {
  it.each(["(a+)+$", "(\\w?){40}!", "(a|a)(a|a)b", "a*a*a*b", "x{2}"])("is %s", (typed) => {
    expect(isLinear(typed)).toBe(false);
  });

  it.each(["layer_1/mlp", "f32[4096", "^dot\\.1$", "(conv)", "p[1][0]"])("is not %s", (typed) => {
    expect(isLinear(typed)).toBe(true);
  });

  it("can be searched for as plain text", () => {
    expect(plainSearch("(A+)+", "too slow")).toMatchObject({ empty: false, error: "too slow" });
    expect(plainSearch("(A+)+").matches("x(a+)+")).toBe(true);
    expect(plainSearch("(A+)+").matches("aaa")).toBe(false);
  });
});
