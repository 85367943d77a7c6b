/**
 * The part of a URL's fragment that is ours: "key=value" parts with known keys, joined by "&". Other parts (the tab
 * that TensorBoard names there, for one) are kept as they are.
 */

function parts(fragment: string): string[] {
  return fragment.replace(/^#/, "").split("&").filter(Boolean);
}

function keyOf(part: string): string {
  return part.includes("=") ? part.slice(0, part.indexOf("=")) : "";
}

/** The values of known keys in a fragment or a query. Text with invalid escapes is kept as it is. */
export function readParts(text: string, keys: ReadonlySet<string>): Map<string, string> {
  const values = new Map<string, string>();
  for (const part of parts(text.replace(/^\?/, ""))) {
    const key = keyOf(part);
    if (keys.has(key)) values.set(key, decode(part.slice(key.length + 1)));
  }
  return values;
}

/** The fragment with our parts replaced by `values`. */
export function writeParts(
  fragment: string,
  keys: ReadonlySet<string>,
  values: ReadonlyMap<string, string>,
): string {
  const others = parts(fragment).filter((part) => !keys.has(keyOf(part)));
  const ours = [...values].map(([key, value]) => `${key}=${encode(value)}`);
  return [...others, ...ours].join("&");
}

/** Escapes what would end the value, and leaves the rest readable: people read and paste these. */
function encode(value: string): string {
  return encodeURIComponent(value).replace(/%(2F|3A|2C|28|29|5B|5D|7C)/g, (code) => decodeURIComponent(code));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", "%20"));
  } catch {
    return text;
  }
}
