import type { JSX } from "preact";
import type { Sort } from "../../layout/table_order";
import type { ColumnView } from "./table_columns";

interface Props {
  columns: ColumnView[];
  template: string;
  sort: Sort;
  onSort: (sort: Sort) => void;
}

/** Headings that sort. Numbers start with the largest, text with the first. */
export function TableHead({ columns, template, sort, onSort }: Props): JSX.Element {
  return (
    <div class="table-head" role="row" style={{ gridTemplateColumns: template }}>
      {columns.map(({ key, heading, about, numeric }) => {
        const sorted = sort.key === key;
        return (
          <div
            key={key}
            role="columnheader"
            aria-sort={!sorted ? "none" : sort.descending ? "descending" : "ascending"}
          >
            <button
              title={about}
              class={numeric ? "numeric" : ""}
              onClick={() => onSort({ key, descending: sorted ? !sort.descending : numeric })}
            >
              {heading}
              {sorted && <span aria-hidden="true">{sort.descending ? " ▾" : " ▴"}</span>}
            </button>
          </div>
        );
      })}
    </div>
  );
}
