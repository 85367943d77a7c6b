import { describe, expect, it } from "vitest";
import { compileSearch, plainSearch } from "../../base/search";
import { dictionaryOf } from "./text_column";
import { matchingEntries } from "./text_search";

const found = (texts: readonly string[], typed: string): string[] => {
  const entries = matchingEntries(dictionaryOf(texts), compileSearch(typed));
  return texts.filter((_, entry) => entries[entry] === 1);
};

describe("matchingEntries", () => {
  it("ignores case, and does not look across two texts", () => {
    expect(found(["Fusion.1", "dot", "fus", "ion.1"], "fusion")).toEqual(["Fusion.1"]);
    expect(found(["fus", "ion"], "fusion")).toEqual([]);
    expect(found(["ab", "", "bc"], "bb")).toEqual([]);
  });

  it("takes a dot for any character of the same line", () => {
    const texts = ["fusion.12", "fusion_12", "fusion12", "fusion\n12", "x fusion.1", "Fusionx1"];
    expect(found(texts, "fusion.1")).toEqual(["fusion.12", "fusion_12", "x fusion.1", "Fusionx1"]);
    expect(found(["a", "ab", "b"], ".b")).toEqual(["ab"]);
    expect(found(["a", "ab", "b"], "a.")).toEqual(["ab"]);
  });

  it("finds later places in a text after one that does not fit", () => {
    expect(found(["aab", "aa", "aaab"], "aa.b")).toEqual(["aaab"]);
    expect(found(["x1 x2y", "x1"], "x.y")).toEqual(["x1 x2y"]);
  });

  it("tests texts with other letters by themselves", () => {
    expect(found(["Größe.1", "grosse.1", "größe"], "größe.1")).toEqual(["Größe.1"]);
    expect(found(["Größe.1", "größe"], "e.1")).toEqual(["Größe.1"]);
    expect(found(["a\0b", "aéb"], "a\0b")).toEqual(["a\0b"]);
  });

  it("keeps the last answer, and not for another search", () => {
    const texts = dictionaryOf(["a", "b"]);
    const search = plainSearch("a");
    expect(matchingEntries(texts, search)).toBe(matchingEntries(texts, search));
    expect([...matchingEntries(texts, plainSearch("b"))]).toEqual([0, 1]);
  });

  it("takes the answer of a search that was made elsewhere", () => {
    const [texts, entries] = [dictionaryOf(["a", "b"]), Uint8Array.of(0, 1)];
    const found = new Map([[texts.packed.bytes, entries]]);
    expect(matchingEntries(texts, { ...plainSearch("a*"), patterns: null, found })).toBe(entries);
  });

  it("finds what a test of each text finds", () => {
    const letters = Array.from("aBb.1[](^$\\é\n{ſsSKk|wWd-*");
    let state = 7;
    const random = (below: number): number => (state = (state * 48_271) % 2_147_483_647) % below;
    const text = (longest: number): string =>
      Array.from({ length: random(longest + 1) }, () => letters[random(letters.length)]).join("");
    for (let round = 0; round < 300; round++) {
      const texts = Array.from({ length: 40 }, () => text(6));
      for (let search = 0; search < 10; search++) {
        // Letter by letter, as earlier answers narrow later ones.
        const [dictionary, typed] = [dictionaryOf(texts), text(4)];
        for (let letter = 1; letter <= typed.length; letter++) {
          const compiled = compileSearch(typed.slice(0, letter));
          const entries = matchingEntries(dictionary, compiled);
          expect([...entries]).toEqual(texts.map((each) => Number(compiled.matches(each))));
        }
      }
    }
  });
});
