/** Sort column and direction of a table. */
export interface Sorting<Key extends string> {
  key: Key;
  descending: boolean;
}

/** Parse a sorting from the URL; "-size" sorts descending. Return `first` if the table has no such column. */
export function readSorting<Key extends string>(
  text: string,
  keys: readonly Key[],
  first: Sorting<Key>,
): Sorting<Key> {
  const descending = text.startsWith("-");
  const key = keys.find((known) => known === text.slice(descending ? 1 : 0));
  return key === undefined ? first : { key, descending };
}

export function writeSorting({ key, descending }: Sorting<string>): string {
  return descending ? `-${key}` : key;
}
