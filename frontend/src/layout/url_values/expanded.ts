/**
 * Which groups of a table, or nodes of a tree, are not as they begin: opened, or closed. As text their marks are joined
 * by dots, the newest last, so that a URL can have them.
 */

/**
 * Characters of a URL that this may take: some forty groups, which is more than anybody opens to show to others, and
 * few enough that the whole address still passes through chats and issue trackers, some of which end links at 2,000.
 */
const MAX_URL_LENGTH = 600;

export function readExpanded(text: string): ReadonlySet<string> {
  return new Set(text.split(".").filter((mark) => mark !== ""));
}

/** The other way round for one of them. */
export function toggleExpanded(text: string, mark: string): string {
  const marks = readExpanded(text);
  const others = [...marks].filter((other) => other !== mark);
  return (marks.has(mark) ? others : [...others, mark]).join(".");
}

/** The newest of them that a URL has room for. */
export function truncateForUrl(text: string): string {
  if (text.length <= MAX_URL_LENGTH) return text;
  const newest = text.slice(-MAX_URL_LENGTH);
  return newest.slice(newest.indexOf(".") + 1);
}

/** A label as a few letters and digits, the same in every file and session: FNV-1a of 32 bits, in base 36. */
export function hashLabel(label: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < label.length; i++) hash = Math.imul(hash ^ label.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(36);
}
