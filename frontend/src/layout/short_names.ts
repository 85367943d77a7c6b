/** Names up to this length are shown whole. */
const WHOLE = 30;
/** Letters at the start of a long name. */
const START = 10;
const WORD_START = /[^\s/._()-]*$/;

/**
 * Return a function that shortens the names of a list: of a long name, the words in the middle that another one begins
 * with, too, give way. What differs is shown, so that names differ that are cut to the width of a column.
 */
export function shortNames(names: readonly string[]): (name: string) => string {
  const sorted = [...new Set(names)].sort();
  const texts = sorted.map((name, i) => {
    const common = Math.max(commonStart(name, sorted[i - 1] ?? ""), commonStart(name, sorted[i + 1] ?? ""));
    const from = name.slice(0, Math.max(common - 1, 0)).search(WORD_START);
    const isCut = name.length > WHOLE && from > START + 1;
    return isCut ? `${name.slice(0, START)}…${name.slice(from)}` : name;
  });
  // Two groups of names may have the same ends.
  const isTwice = (text: string): boolean => texts.indexOf(text) !== texts.lastIndexOf(text);
  const shortened = new Map(sorted.map((name, i) => [name, isTwice(texts[i]) ? name : texts[i]]));
  return (name) => shortened.get(name) ?? name;
}

function commonStart(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}
