/**
 * Byte sizes as text. Memory is sold and addressed in powers of two, so sizes are IEC (1 KiB = 1024 bytes).
 * "MB" in user input is read as MiB too, because XLA's messages print 1024-based sizes as "MB" and "M".
 */

export const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Format with three significant digits, or `figures`, as in the backend's sentences: "1.50 GiB", "512 B". */
export function formatBytes(bytes: number, figures = 3): string {
  let unit = 0;
  let value = Math.abs(bytes);
  // From 999.5 on, three digits would round up to four, and 0.98 MiB reads better than 1000 KiB.
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const least = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const digits = unit === 0 ? 0 : least + figures - 3;
  return `${bytes < 0 ? "\u2212" : ""}${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** Format bytes with their sign: "+1.68 MiB". */
export function formatSigned(bytes: number): string {
  return `${bytes > 0 ? "+" : ""}${formatBytes(bytes)}`;
}

/** Format the distance to a limit: "128 MiB", or "160 MiB over". */
export function formatLeft(left: number): string {
  return left < 0 ? `${formatBytes(-left)} over` : formatBytes(left);
}

/** Format a part of a whole: "3.67 of 15.8 GiB", or "512 MiB of 15.8 GiB" where the units differ. */
export function formatBytesOf(part: number, whole: number): string {
  const [number, unit] = formatBytes(part).split(" ");
  const total = formatBytes(whole);
  return `${total.endsWith(` ${unit}`) ? number : formatBytes(part)} of ${total}`;
}

/** Format the exact figure for tooltips and the clipboard: "1,234,567 bytes". */
export function formatExact(bytes: number): string {
  return `${formatCount(bytes)} bytes`;
}

export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

/** Format a count with its noun: "1 hole", "1,234 holes". */
export function formatCounted(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

const SECONDS = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
] as const;

/** Format a time: an estimated one with the two digits that it has, as in "84 ms". Zero is "0 s". */
export function formatSeconds(seconds: number, digits = 2): string {
  if (!(seconds > 0)) return "0 s";
  const [unit, name] = SECONDS.find(([size]) => seconds >= size) ?? [1e-9, "ns"];
  const figures = { minimumSignificantDigits: digits, maximumSignificantDigits: digits };
  return `${(seconds / unit).toLocaleString("en-US", figures)} ${name}`;
}

/** Format a share as "48%". A nonzero share below 1% is "<1%". */
export function formatShare(part: number, whole: number): string {
  if (!(whole > 0) || part === 0) return "0%";
  const percent = (100 * part) / whole;
  return percent < 1 ? "<1%" : `${Math.round(percent)}%`;
}

const SIZE = /^\s*(\d+(?:\.\d+)?|\.\d+)\s*([kmgtp]?)(i?)(b|bytes?)?\s*$/i;

/** Parse a size such as "1MiB", "1.5 g" or "300" into bytes; null if the text is not a size. */
export function parseBytes(text: string): number | null {
  const found = SIZE.exec(text);
  if (found === null) return null;
  const power = " kmgtp".indexOf(found[2].toLowerCase() || " ");
  return Number(found[1]) * 1024 ** power;
}
