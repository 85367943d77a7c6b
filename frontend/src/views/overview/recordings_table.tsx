import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatCount } from "../../base/units";
import type { OverviewKey } from "../../layout/overview_lines";
import { filterOverview, overviewCsv, sortOverview } from "../../layout/overview_lines";
import type { AdviceById, OverviewRow } from "../../payload/overview";
import { TableHead } from "../recording/table_head";
import { TableToolbar } from "../recording/table_toolbar";
import { useSorting } from "../recording/use_sorting";
import { VirtualLines } from "../recording/virtual_lines";
import type { ViewState } from "../state";
import { overviewColumns } from "./columns";
import { openRecording } from "./open";

/** As the rows come: no column says it. */
const TIGHTEST_FIRST = { key: "", descending: false } as const;

interface Props {
  rows: readonly OverviewRow[];
  advice: AdviceById;
  run: string;
  store: Store<ViewState>;
  dark: boolean;
}

/** Every recording of the run on a line of its own, the tightest first; a click or Enter opens it. */
export function RecordingsTable({ rows, advice, run, store, dark }: Props): JSX.Element {
  const search = useStore(store, (state) => state.search);
  const size = useStore(store, (state) => state.size);
  const [selected, setSelected] = useState(-1);
  const filtered = useMemo(() => filterOverview(rows, search, size, advice), [rows, search, size, advice]);
  const open = (row: OverviewRow): void => openRecording(store, row);
  const columns = useMemo(() => overviewColumns(rows, advice, dark, open), [rows, advice, dark]);
  const [sort, setSort] = useSorting<OverviewKey | "">(store, columns, TIGHTEST_FIRST);
  const lines = useMemo(
    () => sortOverview(filtered.rows, sort.key === "" ? null : { ...sort, key: sort.key }, advice),
    [filtered, sort, advice],
  );
  const template = columns.map((column) => column.track).join(" ");
  return (
    <section
      class="recordings-table"
      data-testid="recordings-table"
      aria-label="Recordings of the run"
      onKeyDown={(event) => {
        const onList = event.target instanceof HTMLElement && event.target.matches("[role=grid]");
        const row = lines.at(selected);
        if (event.key === "Enter" && onList && selected >= 0 && row !== undefined) open(row);
      }}
    >
      <TableToolbar
        search={search}
        onSearch={(text) => store.set({ search: text, match: null })}
        size={size}
        onSize={(text) => store.set({ size: text })}
        options={<></>}
        errors={filtered.errors}
        summary={`${formatCount(lines.length)} of ${formatCount(rows.length)} recordings`}
        csv={() => overviewCsv(lines, advice)}
        fileName={`${run.replaceAll("/", "_")}_overview.csv`}
      />
      <VirtualLines
        count={lines.length}
        reveal={selected}
        empty="No recording matches the filter."
        label="Recordings"
        onStep={(by) => setSelected(Math.min(Math.max(selected + by, 0), lines.length - 1))}
        head={
          <TableHead<OverviewKey | ""> columns={columns} template={template} sort={sort} onSort={setSort} />
        }
        line={(i) => (
          <div
            role="row"
            data-testid="recording-row"
            class={i === selected ? "table-line selected" : "table-line"}
            aria-selected={i === selected}
            style={{ gridTemplateColumns: template }}
            onClick={() => open(lines[i])}
          >
            {columns.map((column) => (
              <span key={column.key} role="gridcell" class={column.numeric ? "numeric" : ""}>
                {column.cell(lines[i])}
              </span>
            ))}
          </div>
        )}
      />
    </section>
  );
}
