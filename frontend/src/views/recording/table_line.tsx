import type { JSX } from "preact";
import type { Rows } from "../../payload/recording";
import type { ColumnView } from "./table_columns";

interface Props {
  rows: Rows;
  row: number;
  columns: ColumnView[];
  template: string;
  dark: boolean;
  selected: boolean;
  hovered: boolean;
  onSelect: () => void;
  onHover: (over: boolean) => void;
}

export function TableLine(props: Props): JSX.Element {
  const { rows, row, columns, template, dark, selected, hovered } = props;
  const shares = rows.charge[row] === 0;
  return (
    <div
      role="row"
      data-testid="buffer-row"
      class={["table-line", selected && "selected", hovered && "hovered", shares && "shares"]
        .filter(Boolean)
        .join(" ")}
      aria-selected={selected}
      style={{ gridTemplateColumns: template }}
      onClick={props.onSelect}
      onMouseEnter={() => props.onHover(true)}
      onMouseLeave={() => props.onHover(false)}
    >
      {columns.map((column) => (
        <span key={column.key} role="gridcell" class={column.numeric ? "numeric" : ""}>
          {column.cell(rows, row, dark)}
        </span>
      ))}
    </div>
  );
}
