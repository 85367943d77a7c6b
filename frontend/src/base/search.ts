import { expressionPatterns, plainPattern, type SearchPattern } from "./search_pattern";

/** A search, applied to many texts. */
export interface Search {
  typed: string;
  /** The search is empty: everything matches and nothing is highlighted. */
  empty: boolean;
  matches: (text: string) => boolean;
  /** Each text that matches has one of them. Null if each text has to be tested. */
  patterns: readonly SearchPattern[] | null;
  /** 1 for each text that matches, of texts that were searched before, by their bytes; null if none were. */
  found: ReadonlyMap<Uint8Array, Uint8Array> | null;
  /** Why the text is searched for as plain text only; null if it is not. */
  error: string | null;
}

/** Return a search for plain text. Case is ignored. */
export function plainSearch(typed: string, error: string | null = null): Search {
  const plain = typed.toLowerCase();
  return {
    typed,
    empty: plain === "",
    matches: (text) => text.toLowerCase().includes(plain),
    patterns: [plainPattern(plain)],
    found: null,
    error,
  };
}

/** Return true if a text contains each of the typed words, in any order. Case is ignored. */
export function hasWords(text: string, typed: string): boolean {
  const lower = text.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

/**
 * Compile text that may be plain or a regular expression. A buffer matches in either reading, so "f32[4096",
 * "fusion.3{0}" and "layer_\d+/mlp" all work without a switch. Case is ignored.
 *
 * The browser's engine may take exponential time, so the page tests only what has patterns or `isLinear`; see startSearch.
 */
export function compileSearch(typed: string): Search {
  const plain = plainSearch(typed);
  if (plain.empty) return plain;
  try {
    const expression = new RegExp(typed, "i");
    return {
      ...plain,
      matches: (text) => expression.test(text) || plain.matches(text),
      patterns: patternsOf(typed, plain),
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*: /, "") : "not a regular expression";
    return { ...plain, error: `invalid regular expression (${reason.toLowerCase()})` };
  }
}

/** Return the patterns of a valid expression and of the same text as plain text. */
function patternsOf(typed: string, plain: Search): SearchPattern[] | null {
  const patterns = expressionPatterns(typed);
  // A dot matches itself, too.
  const same = !/[\\^$*+?()[\]{}|]/.test(typed);
  return patterns === null || same ? patterns : [...patterns, ...(plain.patterns ?? [])];
}

/** Return true if an engine never has a second way to match: there are no repeats and no alternatives. */
export function isLinear(typed: string): boolean {
  return !/[*+?{|]/.test(typed);
}
