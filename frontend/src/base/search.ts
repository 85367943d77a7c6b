/** A compiled search, applied to many texts. */
export interface Search {
  /** The search is empty: everything matches and nothing is highlighted. */
  empty: boolean;
  matches: (text: string) => boolean;
  /** Why the text is not a valid regular expression; it is then searched for as plain text. */
  error: string | null;
}

/**
 * Compile text that may be plain or a regular expression. A buffer matches in either reading, so "f32[4096",
 * "fusion.3{0}" and "layer_\d+/mlp" all work without a switch. Case is ignored.
 */
export function compileSearch(typed: string): Search {
  const plain = typed.toLowerCase();
  if (plain === "") return { empty: true, matches: () => true, error: null };
  try {
    const expression = new RegExp(typed, "i");
    return {
      empty: false,
      matches: (text) => expression.test(text) || text.toLowerCase().includes(plain),
      error: null,
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*: /, "") : "not a regular expression";
    return { empty: false, matches: (text) => text.toLowerCase().includes(plain), error: reason };
  }
}
