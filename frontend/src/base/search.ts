/** What a person typed to find buffers, ready to be asked of many texts. */
export interface Search {
  /** Nothing was typed: everything matches and nothing is marked. */
  empty: boolean;
  matches: (text: string) => boolean;
  /** Why the text is no regular expression; it is then looked for as plain text. */
  error: string | null;
}

/**
 * Text or regular expression, without a switch between them: a buffer matches when either reading does. So
 * "f32[4096" and "fusion.3{0}" find what they say, and "layer_\d+/mlp" works too. Case is ignored.
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
