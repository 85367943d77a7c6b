/** Texts as UTF-8: text i is bytes [offsets[i], offsets[i + 1]). They can be sent to a worker as a whole. */
export interface PackedTexts {
  offsets: Uint32Array;
  bytes: Uint8Array;
}

/** Interned text. Entry i is decoded on first use. */
export class TextDictionary {
  private readonly decoded: string[] = [];
  private lowered: ReturnType<typeof lowerCase> | null = null;

  constructor(
    private readonly offsets: Uint32Array,
    private readonly bytes: Uint8Array,
  ) {}

  get length(): number {
    return this.offsets.length - 1;
  }

  get packed(): PackedTexts {
    return { offsets: this.offsets, bytes: this.bytes };
  }

  /** Return a copy with one more entry. */
  with(text: string): TextDictionary {
    const added = new TextEncoder().encode(text);
    const bytes = new Uint8Array(this.bytes.length + added.length);
    bytes.set(this.bytes);
    bytes.set(added, this.bytes.length);
    return new TextDictionary(Uint32Array.from([...this.offsets, bytes.length]), bytes);
  }

  /**
   * All texts as one string, with one character for each byte: ASCII letters in lower case, and NUL for bytes of other
   * characters. `foreign` are the entries with such characters.
   */
  lowerCase(): { text: string; foreign: readonly number[] } {
    return (this.lowered ??= lowerCase(this.offsets, this.bytes));
  }

  at(entry: number): string {
    return (this.decoded[entry] ??= decoder.decode(
      this.bytes.subarray(this.offsets[entry], this.offsets[entry + 1]),
    ));
  }
}

function lowerCase(offsets: Uint32Array, bytes: Uint8Array): { text: string; foreign: readonly number[] } {
  const decoded = decoder.decode(bytes);
  if (decoded.length === bytes.length && !/\P{ASCII}/u.test(decoded))
    return { text: decoded.toLowerCase(), foreign: [] };
  const lower = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    lower[i] = byte >= 65 && byte <= 90 ? byte + 32 : byte < 128 ? byte : 0;
  }
  const foreign: number[] = [];
  for (let entry = 0; entry + 1 < offsets.length; entry++)
    if (bytes.subarray(offsets[entry], offsets[entry + 1]).some((byte) => byte >= 128)) foreign.push(entry);
  return { text: decoder.decode(lower), foreign };
}

/** Create a dictionary of these texts. */
export function dictionaryOf(texts: readonly string[]): TextDictionary {
  const encoded = texts.map((text) => new TextEncoder().encode(text));
  const offsets = new Uint32Array(texts.length + 1);
  encoded.forEach((bytes, i) => (offsets[i + 1] = offsets[i] + bytes.length));
  const bytes = new Uint8Array(offsets[texts.length]);
  encoded.forEach((text, i) => bytes.set(text, offsets[i]));
  return new TextDictionary(offsets, bytes);
}

export const decoder = new TextDecoder();

/** A text column: one dictionary code for each row. */
export class TextColumn {
  constructor(
    readonly codes: Uint32Array,
    readonly dictionary: TextDictionary,
  ) {}

  get length(): number {
    return this.codes.length;
  }

  /** Whether every row is empty. */
  get blank(): boolean {
    return !this.some((text) => text !== "");
  }

  /** Return whether the text of any row satisfies a predicate, which is called once for each distinct text. */
  some(satisfies: (text: string) => boolean): boolean {
    const { codes, dictionary } = this;
    const none = dictionary.length;
    const tested = new Uint8Array(none + 1);
    for (let row = 0; row < codes.length; row++) {
      const entry = Math.min(codes[row], none);
      if (tested[entry] === 1) continue;
      tested[entry] = 1;
      if (satisfies(entry === none ? "" : dictionary.at(entry))) return true;
    }
    return false;
  }

  /** The text of all rows, if they have the same; otherwise null. */
  get constant(): string | null {
    if (this.length === 0) return null;
    const first = this.codes[0];
    return this.codes.every((code) => code === first) ? this.at(0) : null;
  }

  /** Return the text of a row. A code outside the dictionary (-1 is all bits set) is the empty text. */
  at(row: number): string {
    const code = this.codes[row];
    return code < this.dictionary.length ? this.dictionary.at(code) : "";
  }
}

/** A code outside every dictionary. */
export const NO_TEXT = 0xffffffff;

/** Create a column of empty texts. */
export function blankColumn(length: number): TextColumn {
  return new TextColumn(new Uint32Array(length).fill(NO_TEXT), dictionaryOf([]));
}
