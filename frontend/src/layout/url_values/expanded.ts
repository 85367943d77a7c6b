/**
 * Groups of a table, or nodes of a tree, whose expansion differs from the default. In the URL, their marks
 * are joined by dots, newest last.
 */

/**
 * Maximum length in the URL: about forty groups. With more, the whole URL would exceed the limits of chats
 * and issue trackers, some of which cut links at 2,000 characters.
 */
const MAX_URL_LENGTH = 600;

export function readExpanded(text: string): ReadonlySet<string> {
  return new Set(text.split(".").filter((mark) => mark !== ""));
}

/** Toggle one mark. */
export function toggleExpanded(text: string, mark: string): string {
  const marks = readExpanded(text);
  const others = [...marks].filter((other) => other !== mark);
  return (marks.has(mark) ? others : [...others, mark]).join(".");
}

/** Return the newest marks that fit into the URL. */
export function truncateForUrl(text: string): string {
  if (text.length <= MAX_URL_LENGTH) return text;
  const newest = text.slice(-MAX_URL_LENGTH);
  return newest.slice(newest.indexOf(".") + 1);
}

/** Return a short hash of a label, the same in every file and session: 32-bit FNV-1a in base 36. */
export function hashLabel(label: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < label.length; i++) hash = Math.imul(hash ^ label.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(36);
}
