import type { JSX } from "preact";

interface Props<Key extends string> {
  columns: readonly { key: Key; heading: string; about: string; numeric: boolean }[];
  template: string;
  sort: { key: Key; descending: boolean };
  onSort: (sort: { key: Key; descending: boolean }) => void;
}

/** Headings that sort: numbers largest first, text alphabetically. */
export function TableHead<Key extends string>(props: Props<Key>): JSX.Element {
  const { columns, template, sort, onSort } = props;
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
