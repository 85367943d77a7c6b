import type { JSX } from "preact";
import type { Rows } from "../../payload/recording/rows";
import { Cell, TableRow } from "../tables/data_table";
import type { ColumnView } from "./columns";

interface Props {
  id: string;
  rows: Rows;
  row: number;
  columns: readonly ColumnView[];
  template: string;
  dark: boolean;
  selected: boolean;
  hovered: boolean;
  onPick: () => void;
  onHover: (over: boolean) => void;
}

/** Line of one buffer. */
export function RowLine({ rows, row, columns, dark, hovered, ...line }: Props): JSX.Element {
  const shares = rows.charge[row] === 0;
  return (
    <TableRow
      {...line}
      testid="buffer-row"
      look={[hovered && "hovered", shares && "shares"].filter(Boolean).join(" ")}
    >
      {columns.map((column) => (
        <Cell key={column.key} numeric={column.numeric}>
          {column.cell(rows, row, dark)}
        </Cell>
      ))}
    </TableRow>
  );
}
