/**
 * A pattern of a search: one set of characters for each place. Many ASCII texts can be searched for it at once, in
 * linear time.
 */
export interface SearchPattern {
  places: readonly Place[];
  /** Whether a match begins with the text, and ends with it. */
  atStart: boolean;
  atEnd: boolean;
  /** Whether each text with these characters matches; if not, the text has to be tested. */
  exact: boolean;
}

/** The set of characters that a place may have. */
interface Place {
  /** Identifies places with the same characters. */
  token: string;
  /** 1 at the code of each character in lower case. */
  codes: Uint8Array;
  /** The only character; null for several. */
  only: string | null;
}

/** Return the pattern of plain text in lower case. */
export function plainPattern(plain: string): SearchPattern {
  return { ...ANYWHERE, places: Array.from(plain, (letter) => placeOf(escaped(letter))) };
}

/**
 * Return the patterns of a valid expression, which matches wherever one of them matches; null if the expression has
 * parts that are not sets of characters.
 */
export function expressionPatterns(expression: string): SearchPattern[] | null {
  const patterns: SearchPattern[] = [];
  let [places, pattern]: [Place[], SearchPattern] = [[], ANYWHERE];
  const grouped = expression.includes("|") ? "" : "()";
  for (const [token] of [...expression.matchAll(TOKENS), ["|"]]) {
    if (token === "|") {
      patterns.push({ ...pattern, places });
      [places, pattern] = [[], ANYWHERE];
    } else if (token === "$") pattern = { ...pattern, atEnd: true };
    else if (token === "^" && places.length === 0) pattern = { ...pattern, atStart: true };
    else if (token === "\\b" || token === "\\B") pattern = { ...pattern, exact: false };
    else if (SPECIAL.test(token) || pattern.atEnd) {
      if (!grouped.includes(token)) return null;
    } else places.push(placeOf(token));
  }
  return patterns;
}

const ANYWHERE: SearchPattern = { places: [], atStart: false, atEnd: false, exact: true };

/** Classes of characters and escaped characters; any other character is a token of its own. */
const TOKENS = /\\[dDwWsSbB]|\\[^\w]|\[\^?(?:\\[dDwWsS]|\\[^\w]|[^\]\\])*\]|[^]/g;
const SPECIAL = /^[\\^*+?()[{|]$/;

/** Return the place of a token: the browser's engine tests each character. */
function placeOf(token: string): Place {
  const expression = new RegExp(token, "i");
  const codes = new Uint8Array(128);
  const letters: string[] = [];
  for (let code = 0; code < codes.length; code++) {
    const letter = String.fromCharCode(code);
    if (letter !== letter.toLowerCase() || !expression.test(letter)) continue;
    codes[code] = 1;
    letters.push(letter);
  }
  return { token, codes, only: letters.length === 1 ? letters[0] : null };
}

/** Return whether each match of a pattern contains a match of another that begins at the same character. */
export function extendsPattern(pattern: SearchPattern, other: SearchPattern): boolean {
  return (
    pattern.exact &&
    other.exact &&
    pattern.atStart === other.atStart &&
    !other.atEnd &&
    other.places.length > 0 &&
    other.places.length <= pattern.places.length &&
    other.places.every(({ token }, i) => token === pattern.places[i].token)
  );
}

function escaped(letter: string): string {
  return /[\\^$.*+?()[\]{}|/-]/.test(letter) ? `\\${letter}` : letter;
}

/** A search, applied to many texts. */
export interface Search {
  typed: string;
  /** The search is empty: everything matches and nothing is highlighted. */
  empty: boolean;
  matches: (text: string) => boolean;
  /** Each text that matches contains one of these patterns. Null if each text has to be tested. */
  patterns: readonly SearchPattern[] | null;
  /** By the bytes of texts that were searched before: 1 for each text that matches. Null without such texts. */
  found: ReadonlyMap<Uint8Array, Uint8Array> | null;
  /** Reason why only plain text is searched for; null without one. */
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
 * The browser's engine may take exponential time, so the page tests only what has patterns or `isLinear`;
 * see startSearch.
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

/** Return true for an expression without repeats and alternatives, which has only one way to match. */
export function isLinear(typed: string): boolean {
  return !/[*+?{|]/.test(typed);
}
