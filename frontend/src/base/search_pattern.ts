/**
 * Texts that a search finds: one set of characters for each place. Texts of ASCII characters can be searched for it in
 * linear time, many at once.
 */
export interface SearchPattern {
  places: readonly Place[];
  /** Whether a match begins with the text, and ends with it. */
  atStart: boolean;
  atEnd: boolean;
  /** Whether each text with these characters matches; if not, it has to be tested. */
  exact: boolean;
}

/** Characters that a place may have. */
export interface Place {
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
 * Return the patterns of an expression, which matches where one of them does; null if it has parts that are no set of
 * characters. The expression must be valid.
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

/** Return the place that a token matches: the expression decides for each character. */
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

/** Return whether each match of a pattern contains one of another, which begins at the same character. */
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
