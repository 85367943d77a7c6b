import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatCount, formatCounted } from "../../base/units";
import type { OverviewKey } from "../../layout/overview/overview_table";
import {
  filterOverview,
  overviewCsv,
  overviewTexts,
  sortOverview,
} from "../../layout/overview/overview_table";
import { foldHosts } from "../../layout/overview/equal_hosts";
import type { OverviewRow } from "../../payload/generated/answers";
import type { AdviceById } from "../../payload/responses/overview";
import { Cell, DataTable, stepLine, TableRow, useTable } from "../tables/data_table";
import type { ViewState } from "../state/view_state";
import { Toggle } from "../widgets/toggle";
import { constantColumns, overviewColumns } from "./recordings_columns";
import { openRecording } from "../state/open_recording";
import { useSearch } from "../data/use_search";

/** The server's order, by headroom. */
const TIGHTEST_FIRST = { key: "", descending: false } as const;

interface Props {
  rows: readonly OverviewRow[];
  /** Roles and parts of the rows are still to come. */
  pending: boolean;
  advice: AdviceById;
  run: string;
  store: Store<ViewState>;
  dark: boolean;
}

/** Table of a run's recordings, least headroom first; a click or Enter opens one. */
export function RecordingsTable({ rows, pending, advice, run, store, dark }: Props): JSX.Element {
  const [selected, setSelected] = useState(-1);
  const open = (row: OverviewRow): void => openRecording(store, row);
  const columns = useMemo(
    () => overviewColumns(rows, advice, dark, open, pending),
    [rows, advice, dark, pending],
  );
  const constant = useMemo(() => constantColumns(rows), [rows]);
  const table = useTable<OverviewKey | "">(store, columns, TIGHTEST_FIRST, constant);
  const { size, sort, template } = table;
  const source = useMemo(() => ({ rows, advice }), [rows, advice]);
  const search = useSearch(table.search, source, (of) =>
    of.rows.flatMap((row) => overviewTexts(row, of.advice)),
  );
  const filtered = useMemo(() => filterOverview(rows, search, size, advice), [rows, search, size, advice]);
  const sorted = useMemo(
    () => sortOverview(filtered.rows, sort.key === "" ? null : { ...sort, key: sort.key }, advice),
    [filtered, sort, advice],
  );
  const each = useStore(store, (state) => state.each_host);
  const folded = useMemo(() => foldHosts(sorted), [sorted]);
  const lines = useMemo(
    () => (each ? sorted.map((row) => ({ row, equal: [row] })) : folded),
    [each, sorted, folded],
  );
  const equal = sorted.length - folded.length;
  return (
    <section class="recordings-table" data-testid="recordings-table" aria-label="Recordings of the run">
      <DataTable
        {...{ store, table }}
        {...(equal > 0 || each ? { options: <EachHost on={each} equal={equal} store={store} /> } : {})}
        errors={filtered.errors}
        summary={`${formatCount(sorted.length)} of ${formatCount(rows.length)} recordings`}
        csv={() => overviewCsv(sorted, advice)}
        fileName={`${run.replaceAll("/", "_")}_overview.csv`}
        count={lines.length}
        at={selected}
        empty="No recording matches the filter."
        label="Recordings"
        onStep={(by) => setSelected(stepLine(selected, by, lines.length))}
        keys={{ Enter: (i) => open(lines[i].row) }}
        line={(i, id) => (
          <TableRow
            {...{ id, template }}
            testid="recording-row"
            selected={i === selected}
            onPick={() => open(lines[i].row)}
          >
            {columns.map((column) => (
              <Cell key={column.key} numeric={column.numeric}>
                {column.cell(lines[i].row, lines[i].equal)}
              </Cell>
            ))}
          </TableRow>
        )}
      />
    </section>
  );
}

/** Switch between a row for each host and one row for programs that are equal on several. */
function EachHost({
  on,
  equal,
  store,
}: {
  on: boolean;
  equal: number;
  store: Store<ViewState>;
}): JSX.Element {
  return (
    <Toggle
      label="each host"
      title={`${formatCounted(equal, "row")} of equal programs on other hosts`}
      on={on}
      onChange={(wanted) => store.set({ each_host: wanted })}
    />
  );
}
