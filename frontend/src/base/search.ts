/** A search, applied to many texts. */
export interface Search {
  /** The search is empty: everything matches and nothing is highlighted. */
  empty: boolean;
  matches: (text: string) => boolean;
  /** Why the text is searched for as plain text only; null if it is not. */
  error: string | null;
}

/** Return a search for plain text. Case is ignored. */
export function plainSearch(typed: string, error: string | null = null): Search {
  const plain = typed.toLowerCase();
  return { empty: plain === "", matches: (text) => text.toLowerCase().includes(plain), error };
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
 * The browser's engine may take exponential time, so the page compiles only what `isLinear`; see startSearch.
 */
export function compileSearch(typed: string): Search {
  const plain = plainSearch(typed);
  if (plain.empty) return plain;
  try {
    const expression = new RegExp(typed, "i");
    return { ...plain, matches: (text) => expression.test(text) || plain.matches(text) };
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*: /, "") : "not a regular expression";
    return { ...plain, error: `invalid regular expression (${reason.toLowerCase()})` };
  }
}

/** Return true if an engine never has a second way to match: there are no repeats and no alternatives. */
export function isLinear(typed: string): boolean {
  return !/[*+?{|]/.test(typed);
}
