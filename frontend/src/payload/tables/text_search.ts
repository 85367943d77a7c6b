import { extendsPattern, type Search, type SearchPattern } from "../../base/search";
import type { TextDictionary } from "./text_column";

/** Return 1 for each entry of a dictionary that matches a search. The answer to the last search is kept. */
export function matchingEntries(dictionary: TextDictionary, search: Search): Uint8Array {
  const known = search.found?.get(dictionary.packed.bytes);
  if (known !== undefined) return known;
  const last = lastAnswers.get(dictionary);
  if (last?.search === search) return last.found;
  const { offsets } = dictionary.packed;
  const { text, foreign } = dictionary.lowerCase();
  const found = new Uint8Array(dictionary.length);
  // A search ignores case, so that the text in lower case, which needs no decoding, can be tested.
  const test = (entry: number): boolean => search.matches(text.slice(offsets[entry], offsets[entry + 1]));
  const hits = search.patterns?.map((pattern, i) => {
    const earlier = last?.hits?.[i];
    const extended = earlier !== undefined && extendsPattern(pattern, earlier.pattern) ? earlier : null;
    return { pattern, starts: findPattern(text, offsets, pattern, extended) };
  });
  for (let entry = 0; hits === undefined && entry < found.length; entry++) found[entry] = Number(test(entry));
  for (const { pattern, starts } of hits ?? [])
    for (let entry = 0; entry < found.length; entry++)
      if (starts[entry] >= 0 && (pattern.exact || test(entry))) found[entry] = 1;
  for (const entry of foreign) found[entry] = Number(search.matches(dictionary.at(entry)));
  lastAnswers.set(dictionary, { search, found, hits });
  return found;
}

/** The beginning of a pattern's first match in each entry; -1 for none. */
interface Hits {
  pattern: SearchPattern;
  starts: Int32Array;
}

interface Answer {
  search: Search;
  found: Uint8Array;
  hits: Hits[] | undefined;
}

const lastAnswers = new WeakMap<TextDictionary, Answer>();

/**
 * Return the beginning of a pattern's first match in each text, as a place in the string of all texts; -1 for none.
 * `earlier` are the matches of a pattern that this one extends: no match begins before them.
 */
function findPattern(
  text: string,
  offsets: Uint32Array,
  { places, atStart, atEnd }: SearchPattern,
  earlier: Hits | null,
): Int32Array {
  const length = places.length;
  const starts = new Int32Array(offsets.length - 1).fill(-1);
  const sets = new Uint8Array(length * CODES);
  places.forEach(({ codes }, i) => sets.set(codes, i * CODES));
  const fits = (start: number, from: number): boolean => {
    // Characters beyond ASCII are NUL here; texts with such characters are tested one by one.
    for (let i = from; i < length; i++) if (sets[i * CODES + text.charCodeAt(start + i)] === 0) return false;
    return true;
  };
  const firstIn = (from: number, to: number, known: number): number => {
    const last = to - length;
    const start = atEnd ? Math.max(from, last) : from;
    if (start > last || (atStart && start > from)) return -1;
    if (fits(start, known)) return start;
    if (!atStart) for (let next = start + 1; next <= last; next++) if (fits(next, 0)) return next;
    return -1;
  };
  const { anchor, at } = longestRun(places);
  if (earlier !== null) {
    const known = atEnd ? 0 : earlier.pattern.places.length;
    for (let entry = 0; entry < starts.length; entry++)
      if (earlier.starts[entry] >= 0)
        starts[entry] = firstIn(earlier.starts[entry], offsets[entry + 1], known);
  } else if (atStart || atEnd || anchor === "") {
    for (let entry = 0; entry < starts.length; entry++)
      starts[entry] = firstIn(offsets[entry], offsets[entry + 1], 0);
  } else {
    // A million names take a few hundredths of a second; a call for each of them would take half a second.
    let entry = 0;
    for (let hit = text.indexOf(anchor); hit >= 0;) {
      while (offsets[entry + 1] <= hit) entry += 1;
      const [from, to] = [offsets[entry], offsets[entry + 1]];
      const start = hit - at;
      const inside = start >= from && start + length <= to && (anchor.length === length || fits(start, 0));
      if (inside) starts[entry] = start;
      hit = text.indexOf(anchor, inside ? to : hit + 1);
    }
  }
  return starts;
}

/** Codes of ASCII characters. */
const CODES = 128;

/** Return the longest run of places that have one character each, and where it begins. */
function longestRun(places: SearchPattern["places"]): { anchor: string; at: number } {
  let [longest, at] = ["", 0];
  let run = "";
  places.forEach(({ only }, i) => {
    run = only === null ? "" : run + only;
    if (run.length > longest.length) [longest, at] = [run, i + 1 - run.length];
  });
  return { anchor: longest, at };
}
