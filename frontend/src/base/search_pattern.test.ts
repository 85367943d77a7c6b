import { describe, expect, it } from "vitest";
import { expressionPatterns, extendsPattern, plainPattern } from "./search_pattern";

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
