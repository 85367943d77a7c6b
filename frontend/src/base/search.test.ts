import { describe, expect, it } from "vitest";
import {
  compileSearch,
  expressionPatterns,
  extendsPattern,
  hasWords,
  isLinear,
  plainPattern,
  plainSearch,
} from "./search";

/** Return the characters of each place, and how the pattern is bound. */
const shown = (expression: string): string[] | null =>
  expressionPatterns(expression)?.map(({ places, atStart, atEnd, exact }) => {
    const sets = places.map(({ codes, only }) => only ?? `<${codes.reduce((sum, one) => sum + one, 0)}>`);
    return `${atStart ? "^" : ""}${sets.join("")}${atEnd ? "$" : ""}${exact ? "" : "?"}`;
  }) ?? null;

describe("expressionPatterns", () => {
  it.each([
    ["Fusion.1", ["fusion<100>1"]],
    ["^fusion\\.\\d$", ["^fusion.<10>$"]],
    ["^dot|add$|", ["^dot", "add$", ""]],
    ["(mlp)/[a-c\\d]", ["mlp/<13>"]],
    ["\\bmlp\\b", ["mlp?"]],
    ["é[^]", ["<0><102>"]],
    ["a]}", ["a]}"]],
  ])("reads %s", (expression, patterns) => expect(shown(expression)).toEqual(patterns));

  it.each(["a*", "a+", "a?", "x{2}", "(a|b)", "(?=a)", "(a)\\1", "\\x41", "\\t", "a^b", "$a", "[\\b]"])(
    "does not read %s",
    (expression) => expect(shown(expression)).toBeNull(),
  );
});

describe("extendsPattern", () => {
  it.each([
    ["fusion", "fus", true],
    ["^fus", "^f", true],
    ["fus$", "fus", true],
    ["fus", "fusion", false],
    ["^fus", "fus", false],
    ["fus$", "fu$", false],
    ["\\bfus", "\\bf", false],
  ])("%s, after %s: %s", (typed, earlier, extended) => {
    const [one, other] = [typed, earlier].map((each) => expressionPatterns(each)?.[0] ?? plainPattern(each));
    expect(extendsPattern(one, other)).toBe(extended);
  });
});

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
