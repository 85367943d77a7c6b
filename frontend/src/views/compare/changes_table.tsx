import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatBytes, formatCount, formatCounted, formatExact } from "../../base/units";
import type { EntryKey, EntrySort } from "../../layout/compare/change_table";
import {
  CHANGE_LABELS,
  delta,
  entriesCsv,
  entryTexts,
  filterEntries,
  formatSigned,
  sortEntries,
} from "../../layout/compare/change_table";
import type { ConstantColumn } from "../../layout/table/constant_columns";
import { sameText, splitConstant } from "../../layout/table/constant_columns";
import { entryName } from "../../layout/compare/selected_change";
import type { Comparison, ComparedEntry } from "../../payload/generated/answers";
import type { Change } from "../../payload/generated/constants";
import { CHANGES, ROLES } from "../../payload/generated/constants";
import { ButtonGroup } from "../widgets/button_group";
import type { Column } from "../tables/data_table";
import { Cell, DataTable, stepLine, TableRow, useTable } from "../tables/data_table";
import { Middle } from "../widgets/middle";
import { Role } from "../widgets/role";
import type { ViewState } from "../state/view_state";
import { useSearch } from "../data/use_search";

const COLUMNS: readonly Column<EntryKey>[] = [
  {
    key: "change",
    heading: "Change",
    about: "New, gone, grown or shrunk",
    numeric: false,
    track: "92px",
  },
  { key: "bytes_a", heading: "A", about: "Bytes in A", numeric: true, track: "84px" },
  { key: "bytes_b", heading: "B", about: "Bytes in B", numeric: true, track: "84px" },
  { key: "delta", heading: "B − A", about: "Bytes in B minus bytes in A", numeric: true, track: "92px" },
  { key: "role", heading: "Category", about: "Role", numeric: false, track: "128px" },
  {
    key: "shape",
    heading: "Shape",
    about: "Shape, and the previous one if it changed",
    numeric: false,
    track: "minmax(110px, .7fr)",
  },
  {
    key: "site",
    heading: "What",
    about: "Model path or allocation site",
    numeric: false,
    track: "minmax(180px, 1.4fr)",
  },
  {
    key: "source",
    heading: "Source",
    about: "Innermost line of your own code",
    numeric: false,
    track: "minmax(140px, 1fr)",
  },
];
/** Split off columns that are empty or the same throughout: device profiles have no roles or shapes. */
function columnsOf(entries: readonly ComparedEntry[]): {
  columns: Column<EntryKey>[];
  constant: ConstantColumn[];
} {
  return splitConstant(COLUMNS, (key) => {
    if (key === "role") return entries.every(({ role }) => role === 0) ? "" : sameText(entries, roleOf);
    if (key !== "shape" && key !== "source") return null;
    return entries.every((entry) => entry[key] === "")
      ? ""
      : sameText(entries, (entry) => textOf(key, entry));
  });
}

const roleOf = ({ role }: ComparedEntry): string => ROLES[role];

const LARGEST_FIRST: EntrySort = { key: "delta", descending: true };

interface Props {
  comparison: Comparison;
  store: Store<ViewState>;
  dark: boolean;
}

/** Table of changes: new, gone, grown and shrunk, matched by name and source rather than by id. */
export function ChangesTable({ comparison, store, dark }: Props): JSX.Element {
  const { entries, changes, entries_total: count, left_out_bytes: left } = comparison;
  const kinds = useStore(store, (state) => state.change_kinds);
  const wanted = useMemo(() => new Set(CHANGES.filter((kind) => kinds.split(",").includes(kind))), [kinds]);
  const change = useStore(store, (state) => state.selected_change);
  const { columns, constant } = useMemo(() => columnsOf(entries), [entries]);
  const table = useTable(store, columns, LARGEST_FIRST, constant);
  const { size, sort, template } = table;
  const search = useSearch(table.search, entries, (of) => of.flatMap(entryTexts));
  const filtered = useMemo(
    () => filterEntries(entries, wanted, search, size),
    [entries, wanted, search, size],
  );
  const lines = useMemo(() => sortEntries(filtered.entries, sort), [filtered, sort]);
  const at = lines.findIndex((entry) => entryName(entry) === change);
  const lookAt = (entry: ComparedEntry): void =>
    store.set({ selected_change: entryName(entry) === change ? "" : entryName(entry) });
  const step = (by: number): void => {
    const next = stepLine(at, by, lines.length);
    if (next >= 0) store.set({ selected_change: entryName(lines[next]) });
  };
  const toggle = (kind: Change): void =>
    store.set({ change_kinds: CHANGES.filter((each) => wanted.has(each) !== (each === kind)).join(",") });
  return (
    <section aria-label="Changes" class="changes">
      <header class="section-head">
        <h2>What changed</h2>
        <ButtonGroup label="Kinds of change" look="choice">
          {CHANGES.map((change) => (
            <button
              key={change}
              aria-pressed={wanted.has(change)}
              disabled={changes[change].entries === 0}
              data-testid={`change-${change}`}
              onClick={() => toggle(change)}
            >
              {formatCount(changes[change].entries)} {CHANGE_LABELS[change]}
              {changes[change].bytes !== 0 && <b> {formatSigned(changes[change].bytes)}</b>}
            </button>
          ))}
        </ButtonGroup>
      </header>
      <DataTable
        {...{ store, table }}
        errors={filtered.errors}
        summary={
          `${formatCount(lines.length)} of ${formatCount(count)}` +
          (left > 0 ? `, omitting the smallest: ${formatBytes(left)}` : "")
        }
        csv={() => entriesCsv(lines)}
        fileName="changes.csv"
        count={lines.length}
        at={at}
        empty={count === 0 ? "Nothing is live in A or B." : "No change matches the filter."}
        label="Changes"
        onStep={step}
        line={(i, id) => (
          <TableRow
            {...{ id, template }}
            testid="change-row"
            selected={i === at}
            onPick={() => lookAt(lines[i])}
          >
            {columns.map((column) => (
              <EntryCell key={column.key} column={column.key} entry={lines[i]} dark={dark} />
            ))}
          </TableRow>
        )}
      />
    </section>
  );
}

function EntryCell(props: { column: EntryKey; entry: ComparedEntry; dark: boolean }): JSX.Element {
  const { column, entry, dark } = props;
  if (column === "bytes_a") return <Amount bytes={entry.bytes_a} allocations={entry.allocations_a} />;
  if (column === "bytes_b") return <Amount bytes={entry.bytes_b} allocations={entry.allocations_b} />;
  if (column === "delta") {
    const moved = delta(entry);
    return (
      <Cell numeric>
        <span class={moved > 0 ? "grown" : moved < 0 ? "shrunk" : ""}>{formatSigned(moved)}</span>
      </Cell>
    );
  }
  if (column === "role")
    return (
      <Cell>
        <Role role={entry.role} dark={dark} />
      </Cell>
    );
  const text = textOf(column, entry);
  return (
    <Cell title={text}>
      <Middle text={text} />
    </Cell>
  );
}

function textOf(column: "change" | "shape" | "site" | "source", entry: ComparedEntry): string {
  if (column === "change") return CHANGE_LABELS[entry.change];
  if (column === "shape" && entry.shape_before !== "") return `${entry.shape}, was ${entry.shape_before}`;
  return entry[column];
}

function Amount({ bytes, allocations }: { bytes: number; allocations: number }): JSX.Element {
  return (
    <Cell numeric title={`${formatExact(bytes)} in ${formatCounted(allocations, "allocation")}`}>
      {allocations === 0 ? <span class="muted">–</span> : formatBytes(bytes)}
    </Cell>
  );
}
