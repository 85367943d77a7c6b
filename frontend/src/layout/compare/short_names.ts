/** Letters that a cut name keeps at least: it is cut no further than it has to be. */
const MIN_LETTERS = 40;
const ELLIPSIS = "…";
/** Letters before which a part of a path or a word ends. */
const ENDS = ["/", " ", "("];

/**
 * Return the names by which long ones are shown beside each other: without the part that a name and its neighbor in
 * alphabetical order have in common, which would leave no room for the part that differs.
 */
export function shortNames(names: Iterable<string>): ReadonlyMap<string, string> {
  const sorted = [...new Set(names)].sort();
  const texts = sorted.map((name, i) => {
    const same = Math.max(common(name, sorted[i - 1] ?? ""), common(name, sorted[i + 1] ?? ""));
    const cut = boundary(name, Math.min(same, name.length - MIN_LETTERS));
    return cut > 0 ? ELLIPSIS + name.slice(cut) : name;
  });
  const once = new Set(texts.filter((text) => texts.indexOf(text) === texts.lastIndexOf(text)));
  // Two groups of names may have the same ends.
  return new Map(sorted.map((name, i) => [name, once.has(texts[i]) ? texts[i] : name]));
}

function common(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

/** Return the last of these places up to `most`. */
function boundary(name: string, most: number): number {
  return Math.max(...ENDS.map((letter) => name.lastIndexOf(letter, most)), 0);
}
