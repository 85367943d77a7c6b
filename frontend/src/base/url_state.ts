/**
 * The page's own part of a URL's fragment: "key=value" parts with known keys, joined by "&". Other parts, such as the
 * tab of TensorBoard, are unchanged.
 */

function parts(fragment: string): string[] {
  return fragment.replace(/^#/, "").split("&").filter(Boolean);
}

function keyOf(part: string): string {
  return part.includes("=") ? part.slice(0, part.indexOf("=")) : "";
}

/** Return the values of known keys in a fragment or a query. Text with invalid escapes is unchanged. */
export function readParts(text: string, keys: ReadonlySet<string>): Map<string, string> {
  const values = new Map<string, string>();
  for (const part of parts(text.replace(/^\?/, ""))) {
    const key = keyOf(part);
    if (keys.has(key)) values.set(key, decode(part.slice(key.length + 1)));
  }
  return values;
}

/** Return the fragment with the page's parts replaced by `values`. */
export function writeParts(
  fragment: string,
  keys: ReadonlySet<string>,
  values: ReadonlyMap<string, string>,
): string {
  const others = parts(fragment).filter((part) => !keys.has(keyOf(part)));
  const ours = [...values].map(([key, value]) => `${key}=${encode(value)}`);
  return [...others, ...ours].join("&");
}

/** Escape only characters that would end the value, because people read and paste URLs. */
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
