import { useMemo } from "preact/hooks";
import { formatBytes, formatCount, formatCounted, formatExact, formatSigned } from "../../base/units";
import { CHANGE_LABELS, delta, entryName, entryTexts } from "../../layout/compare/changes";
import { shortNames } from "../../layout/short_names";
import { sameText } from "../../layout/table/fields";
import type { Sorting } from "../../layout/url_values";
import type { ComparedEntry, Comparison } from "../../payload/generated/answers";
import { type Change, CHANGES, ROLES } from "../../payload/generated/constants";
import { store, useViewState } from "../state/view_state";
import { type Column, column, DASH, savedColumn } from "../tables/columns";
import { Table } from "../tables/table";
import { ButtonGroup } from "../widgets/choice";
import { Middle, Role } from "../widgets/labels";

/** Columns of changes. Empty ones and those equal in all rows are left out: device profiles have no roles or shapes. */
export function changeColumns(entries: readonly ComparedEntry[]): Column<ComparedEntry>[] {
  const role = (entry: ComparedEntry): string => ROLES[entry.role];
  const short = shortNames(entries.flatMap((entry) => [entry.site, entry.source]));
  const name = (text: string) => (
    <span title={text}>
      <Middle text={short(text)} />
    </span>
  );
  const known = ({ role: number }: ComparedEntry): boolean => number !== 0;
  return [
    column("name", "change", "Change", "New, gone, grown or shrunk", (entry) => CHANGE_LABELS[entry.change], {
      track: "92px",
    }),
    column("bytes", "bytes_a", "A", "Bytes in A", (entry) => entry.bytes_a, {
      cell: (entry) => <Amount bytes={entry.bytes_a} allocations={entry.allocations_a} />,
    }),
    column("bytes", "bytes_b", "B", "Bytes in B", (entry) => entry.bytes_b, {
      cell: (entry) => <Amount bytes={entry.bytes_b} allocations={entry.allocations_b} />,
    }),
    column("change", "delta", "B − A", "Bytes in B minus bytes in A", delta, {
      csv: "change_bytes",
      track: "92px",
      order: (entry) => Math.abs(delta(entry)),
      cell: (entry) => (
        <span class={delta(entry) > 0 ? "grown" : delta(entry) < 0 ? "shrunk" : ""}>
          {formatSigned(delta(entry))}
        </span>
      ),
    }),
    savedColumn("allocations_a", (entry) => entry.allocations_a),
    savedColumn("allocations_b", (entry) => entry.allocations_b),
    column("text", "role", "Role", "What the memory is for", role, {
      track: "128px",
      constant: entries.some(known) ? sameText(entries, role) : "",
      cell: (entry) => <Role role={entry.role} />,
    }),
    column("name", "shape", "Shape", "Shape, and the previous one if it changed", ({ shape }) => shape, {
      track: "minmax(110px, .7fr)",
      constant: sameText(entries, shapeText),
      cell: (entry) => name(shapeText(entry)),
    }),
    savedColumn("shape_before", (entry) => entry.shape_before),
    column("name", "site", "Site", "Op name or allocation site", ({ site }) => site, {
      track: "minmax(180px, 1.4fr)",
      cell: ({ site }) => name(site),
    }),
    column("name", "source", "Source", "Innermost line of your own code", ({ source }) => source, {
      track: "minmax(140px, 1fr)",
      constant: sameText(entries, ({ source }) => source),
      cell: ({ source }) => name(source),
    }),
  ];
}

function shapeText({ shape, shape_before: before }: ComparedEntry): string {
  return before === "" ? shape : `${shape}, was ${before}`;
}

function Amount({ bytes, allocations }: { bytes: number; allocations: number }) {
  const title = `${formatExact(bytes)} in ${formatCounted(allocations, "allocation")}`;
  return <span title={title}>{allocations === 0 ? DASH : formatBytes(bytes)}</span>;
}

const LARGEST_FIRST: Sorting = { key: "delta", descending: true };

/** Table of changes: new, gone, grown and shrunk, matched by name and source rather than by id. */
export function ChangesTable({ comparison }: { comparison: Comparison }) {
  const { entries, changes, entries_total: count, left_out_bytes: left } = comparison;
  const kinds = useViewState((state) => state.change_kinds);
  const wanted = useMemo(() => new Set(CHANGES.filter((kind) => kinds.split(",").includes(kind))), [kinds]);
  const change = useViewState((state) => state.selected_change);
  const columns = useMemo(() => changeColumns(entries), [entries]);
  const rows = useMemo(
    () => entries.filter((entry) => wanted.size === 0 || wanted.has(entry.change)),
    [entries, wanted],
  );
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
      <Table
        {...{ columns, rows }}
        bytes={(entry) => Math.abs(delta(entry))}
        texts={entryTexts}
        first={LARGEST_FIRST}
        label="Changes"
        testid="change-row"
        noun="change"
        fileName="changes.csv"
        summary={(shown) =>
          `${formatCount(shown)} of ${formatCount(count)}` +
          (left > 0 ? `, omitting the smallest: ${formatBytes(left)}` : "")
        }
        {...(count === 0 ? { empty: "Nothing is live in A or B." } : {})}
        isSelected={(entry) => entryName(entry) === change}
        onSelect={(entry) => store.set({ selected_change: entryName(entry) })}
        open={(entry) => store.set({ selected_change: entryName(entry) === change ? "" : entryName(entry) })}
      />
    </section>
  );
}
