import type { JSX } from "preact";
import { Table, type TableProps } from "../tables/table";

/** Tables that fit into a narrow window. */
const FEW_COLUMNS = 3;

/** Table of a section's list. */
export function ListTable<Row>(props: TableProps<Row>): JSX.Element {
  const { columns, testid } = props;
  return (
    <div class={columns.length <= FEW_COLUMNS ? "list-table few-columns" : "list-table"} data-testid={testid}>
      <Table {...props} testid={`${testid}-row`} />
    </div>
  );
}

/** Format the time that a session's name states; null if it states none. */
export function sessionTime({ began }: { began: number | null }): string | null {
  return began === null ? null : new Date(1000 * began).toISOString().slice(0, 19).replace("T", " ");
}
