import { ANY, type Search, type SearchPattern } from "../../base/search";
import type { TextDictionary } from "./text_column";

/** Return 1 for each entry of a dictionary that matches a search. The answer to the last search is kept. */
export function matchingEntries(dictionary: TextDictionary, search: Search): Uint8Array {
  const last = lastSearches.get(dictionary);
  if (last?.search === search) return last.found;
  const { pattern } = search;
  const found = new Uint8Array(dictionary.length);
  if (pattern === null)
    for (let entry = 0; entry < found.length; entry++)
      found[entry] = Number(search.matches(dictionary.at(entry)));
  else findPattern(dictionary, search, pattern, found);
  lastSearches.set(dictionary, { search, found });
  return found;
}

const lastSearches = new WeakMap<TextDictionary, { search: Search; found: Uint8Array }>();

/**
 * Look for the pattern in all texts as one string: a million names take a few hundredths of a second, where a call for
 * each of them takes half a second.
 */
function findPattern(
  dictionary: TextDictionary,
  { matches }: Search,
  { codes, exact }: SearchPattern,
  found: Uint8Array,
): void {
  const { offsets } = dictionary.packed;
  const { text, foreign } = dictionary.lowerCase;
  const { anchor, at } = longestRun(codes);
  const fits = (start: number): boolean => {
    for (let i = 0; i < codes.length; i++) {
      const code = text.charCodeAt(start + i);
      if (codes[i] === ANY ? code === LINE_FEED || code === CARRIAGE_RETURN : code !== codes[i]) return false;
    }
    return true;
  };
  // A search ignores case, so that the text in lower case, which needs no decoding, can be tested.
  const test = (entry: number): boolean => matches(text.slice(offsets[entry], offsets[entry + 1]));
  if (codes.length === 0)
    for (let entry = 0; entry < found.length; entry++) found[entry] = Number(test(entry));
  const simple = anchor.length === codes.length;
  let entry = 0;
  for (let hit = anchor === "" ? -1 : text.indexOf(anchor); hit >= 0;) {
    while (offsets[entry + 1] <= hit) entry += 1;
    const [from, to] = [offsets[entry], offsets[entry + 1]];
    const start = hit - at;
    const inside = start >= from && start + codes.length <= to && (simple || fits(start));
    if (inside && (exact || test(entry))) found[entry] = 1;
    hit = text.indexOf(anchor, inside ? to : hit + 1);
  }
  for (const other of foreign) found[other] = Number(matches(dictionary.at(other)));
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Return the longest run of characters in a pattern, and where it begins. */
function longestRun(codes: readonly number[]): { anchor: string; at: number } {
  let [at, length] = [0, 0];
  for (let from = 0; from < codes.length; from++) {
    let to = from;
    while (to < codes.length && codes[to] !== ANY) to += 1;
    if (to - from > length) [at, length] = [from, to - from];
    from = to;
  }
  return { anchor: String.fromCharCode(...codes.slice(at, at + length)), at };
}
