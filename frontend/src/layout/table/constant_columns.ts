import { ROLES } from "../../payload/generated/constants";
import type { Rows } from "../../payload/recording/rows";
import type { RowSortKey } from "./row_order";

/** Heading and value of a column that is the same in all rows. */
export type ConstantColumn = readonly [heading: string, value: string];

const TEXT_KEYS = ["shape", "dtype", "op", "op_name", "source", "stack", "step"] as const;

/** Return whether a column is empty throughout a recording. */
export function isBlank(rows: Rows, key: RowSortKey): boolean {
  if (key === "role") return !rows.roles_follow && rows.role.every((role) => role === 0);
  const text = TEXT_KEYS.find((known) => known === key);
  return text !== undefined && rows[text].blank;
}

/** Return the text that a column has in all rows of a recording; null if rows differ, or there is one row only. */
export function constantText(rows: Rows, key: RowSortKey): string | null {
  if (rows.length < 2) return null;
  if (key === "role")
    return !rows.roles_follow && rows.role.every((role) => role === rows.role[0])
      ? ROLES[rows.role[0]]
      : null;
  // Requested bytes that are those of the size, of all rows, are no second figure.
  if (key === "expansion" || key === "unpadded") {
    const exact = rows.size.every((size, row) => size === rows.unpadded[row]);
    return !exact ? null : key === "expansion" ? "1.00×" : "as Size";
  }
  const text = TEXT_KEYS.find((known) => known === key);
  return text === undefined ? null : rows[text].constant;
}

/** Split columns into those that rows differ in, and those that are the same in all rows, which are one line of text. */
export function splitConstant<Column extends { key: Key; heading: string }, Key extends string>(
  columns: readonly Column[],
  constantOf: (key: Key) => string | null,
): { columns: Column[]; constant: ConstantColumn[] } {
  const constants = new Map(columns.map(({ key }) => [key, constantOf(key)]));
  return {
    columns: columns.filter(({ key }) => constants.get(key) === null),
    constant: columns.flatMap(({ key, heading }) => {
      const value = constants.get(key) ?? "";
      return value === "" ? [] : [[heading, value] as const];
    }),
  };
}

/** Return the text that all items have; null if they differ, or there is one item only. */
export function sameText<Item>(items: readonly Item[], read: (item: Item) => string): string | null {
  if (items.length < 2) return null;
  const first = read(items[0]);
  return items.every((item) => read(item) === first) ? first : null;
}
