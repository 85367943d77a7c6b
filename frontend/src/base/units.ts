/**
 * Bytes for people. Memory is sold and addressed in powers of two, so sizes are IEC (1 KiB = 1024 bytes); "MB" typed
 * by a person is read as MiB too, since XLA's own messages print 1024-based sizes as "MB" and "M".
 */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Three significant digits, as the backend's own sentences have: "1.50 GiB", "71.2 GiB", "512 B". */
export function formatBytes(bytes: number): string {
  let unit = 0;
  let value = Math.abs(bytes);
  // 999.5 is where three digits round up to four; 1000 KiB reads worse than 0.98 MiB.
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${bytes < 0 ? "\u2212" : ""}${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** "1,234,567 bytes": for titles and copies, where the exact figure is wanted. */
export function formatExact(bytes: number): string {
  return `${formatCount(bytes)} bytes`;
}

export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

/** "1 hole", "1,234 holes". */
export function formatCounted(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Part of a whole as "48%"; "<1%" rather than a zero that is not one. */
export function formatShare(part: number, whole: number): string {
  if (!(whole > 0) || part === 0) return "0%";
  const percent = (100 * part) / whole;
  return percent < 1 ? "<1%" : `${Math.round(percent)}%`;
}

const SIZE = /^\s*(\d+(?:\.\d+)?|\.\d+)\s*([kmgtp]?)(i?)(b|bytes?)?\s*$/i;

/** Bytes of a size as people write it ("1MiB", "1.5 g", "300"), or null when it is not one. */
export function parseBytes(text: string): number | null {
  const found = SIZE.exec(text);
  if (found === null) return null;
  const power = " kmgtp".indexOf(found[2].toLowerCase() || " ");
  return Number(found[1]) * 1024 ** power;
}
