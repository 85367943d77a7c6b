/** A search, applied to many texts. */
export interface Search {
  /** The search is empty: everything matches and nothing is highlighted. */
  empty: boolean;
  matches: (text: string) => boolean;
  /** What a text that matches contains. Null if case counts in `matches`: it is a set of known texts. */
  pattern: SearchPattern | null;
  /** Why the text is searched for as plain text only; null if it is not. */
  error: string | null;
}

/** Characters that follow each other in a text: codes of ASCII characters, in lower case, or ANY. */
export interface SearchPattern {
  codes: readonly number[];
  /** Whether each text with these characters matches; if not, it has to be tested. */
  exact: boolean;
}

/** Any character but the end of a line. */
export const ANY = -1;

/** Return a search for plain text. Case is ignored. */
export function plainSearch(typed: string, error: string | null = null): Search {
  const plain = typed.toLowerCase();
  return {
    empty: plain === "",
    matches: (text) => text.toLowerCase().includes(plain),
    pattern: patternOf(plain, true),
    error,
  };
}

/** Any text may match. */
const UNKNOWN: SearchPattern = { codes: [], exact: false };

function patternOf(plain: string, exact: boolean, any = ""): SearchPattern {
  const codes = Array.from(plain, (letter) => (letter === any ? ANY : letter.charCodeAt(0)));
  return codes.every((code) => code < 128) && codes.some((code) => code !== ANY) ? { codes, exact } : UNKNOWN;
}

/** Return the pattern of an expression that `isLinear`: its longest part without special characters, or all of it. */
function patternOfExpression(plain: string): SearchPattern {
  if (!/[\\^$*+?()[\]{}|]/.test(plain)) return patternOf(plain, true, ".");
  // A backslash or a bracket gives the text after it another meaning.
  const parts = /[\\[*+?{|]/.test(plain) ? [] : plain.split(/[.^$()\]}]/);
  const longest = parts.reduce((one, other) => (other.length > one.length ? other : one), "");
  return patternOf(longest, false);
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
    return {
      ...plain,
      matches: (text) => expression.test(text) || plain.matches(text),
      pattern: patternOfExpression(typed.toLowerCase()),
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*: /, "") : "not a regular expression";
    return { ...plain, error: `invalid regular expression (${reason.toLowerCase()})` };
  }
}

/** Return true if an engine never has a second way to match: there are no repeats and no alternatives. */
export function isLinear(typed: string): boolean {
  return !/[*+?{|]/.test(typed);
}
