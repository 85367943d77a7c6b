import type { ComponentChildren } from "preact";
import { formatBytes, formatCounted, formatExact, formatShare } from "../../base/units";
import type { GroupKey, TableLine } from "../../layout/table/table_lines";
import { type Terms, useTerms } from "../data/terms";
import { Bytes, type Column } from "../tables/columns";

/** What rows can be grouped by, and its name in a sentence. */
const GROUPS: readonly (readonly [GroupKey, string])[] = [
  ["source", "source line"],
  ["role", "role"],
  ["op_name", ""],
  ["name", "name"],
  ["op", "region"],
  ["stack", "stack"],
  ["step", "step of allocation"],
  ["shape", "shape"],
  ["dtype", "type"],
  ["size", "size and role"],
  ["none", "nothing"],
];

/** Return the name of a grouping; by the function or the model path, as the column is called. */
function groupLabel(key: GroupKey, { op_name }: Terms): string {
  return GROUPS.find(([known]) => known === key)?.[1] || op_name.toLowerCase();
}

/** Choice of the grouping of a table. */
export function GroupChoice(props: {
  group: GroupKey;
  /** Groupings that the rows have values for. */
  keys: readonly GroupKey[];
  onPick: (group: GroupKey) => void;
}) {
  const { group, keys, onPick } = props;
  const terms = useTerms();
  return (
    <label class="toggle">
      Grouped by
      <select
        data-testid="table-group"
        value={group}
        onChange={(event) => onPick(event.currentTarget.value as GroupKey)}
      >
        {GROUPS.filter(([key]) => keys.includes(key) || key === group).map(([key]) => (
          <option key={key} value={key}>
            {groupLabel(key, terms)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What the profile does not record, once: rows without a value are grouped by size and role. */
export function MissingNote(props: {
  lines: readonly TableLine[];
  group: GroupKey;
  /** No name, line or stack is known of any row. */
  nameless: boolean;
}) {
  const { lines, group, nameless } = props;
  const terms = useTerms();
  const missing = lines.filter((line) => line.kind === "group" && !line.known);
  const count = missing.reduce((sum, line) => sum + (line.kind === "group" ? line.count : 0), 0);
  const text =
    count > 0
      ? `${formatCounted(count, terms.item, terms.items)} without a ${groupLabel(group, terms)}: ` +
        "grouped by size and role."
      : nameless && group === "size"
        ? `The profile has no names, source lines or stacks of its ${terms.items}.`
        : "";
  return text === "" ? null : (
    <p class="muted constant-columns" data-testid="missing-note">
      {text}
    </p>
  );
}

interface FoldProps {
  /** Total in use, for a group's share. */
  total: number;
  columns: readonly Column<number>[];
  template: string;
}

interface Props extends FoldProps {
  line: Exclude<TableLine, { kind: "row" }>;
  /** Beginning of all labels, which is left out. */
  folder: string;
  onToggle: () => void;
}

/** Heading of a group; a click expands or collapses it. */
export function GroupLine({ line, folder, total, columns, template, onToggle }: Props) {
  const terms = useTerms();
  const isGroup = line.kind === "group";
  const label = isGroup ? line.label : "";
  const shortened = label.startsWith(folder) ? label.slice(folder.length) : label;
  return (
    <GroupRow>
      <button
        class={`fold fold-${line.kind}`}
        data-testid={`${line.kind}-line`}
        aria-expanded={line.open}
        style={{ gridTemplateColumns: template }}
        onClick={onToggle}
      >
        <Sums bytes={line.bytes} requested={isGroup ? line.requested : null} columns={columns} />
        <span class="fold-label" style={spanFromName(columns)} title={label}>
          {isGroup && <Share part={line.bytes} whole={total} />}
          <span aria-hidden="true">{line.open ? "▾" : "▸"}</span>
          {/* Paths begin alike: where there is no room, their beginning gives way. */}
          <span class="from-end">
            <bdi>{isGroup ? shortened : "smaller than 16 KiB"}</bdi>
          </span>
          <span class="muted">{formatCounted(line.count, terms.item, terms.items)}</span>
        </span>
      </button>
    </GroupRow>
  );
}

/** Row with one cell: a grid may contain rows only. */
function GroupRow({ testid, children }: { testid?: string; children: ComponentChildren }) {
  return (
    <div role="row" data-testid={testid}>
      <div role="rowheader">{children}</div>
    </div>
  );
}

/** Line for live bytes without a row, so that the lines add up to the curve. */
export function UnexplainedLine({ bytes, total, columns, template }: FoldProps & { bytes: number }) {
  const terms = useTerms();
  return (
    <GroupRow testid="unexplained">
      <div class="fold fold-group" style={{ gridTemplateColumns: template }}>
        <Sums {...{ bytes, requested: null, columns }} />
        <span class="fold-label" style={spanFromName(columns)}>
          <Share part={bytes} whole={total} />
          {terms.unexplained}
        </span>
      </div>
    </GroupRow>
  );
}

/** A label spans all columns from the name on. */
function spanFromName(columns: readonly Column<number>[]): { gridColumn: string } {
  return { gridColumn: `${gridColumnOf(columns, "name")} / -1` };
}

/** Return the CSS grid line of a column. */
function gridColumnOf(columns: readonly Column<number>[], key: string): number {
  return columns.findIndex((column) => column.key === key) + 1;
}

interface SumsProps {
  bytes: number;
  /** Null if unknown. */
  requested: number | null;
  columns: readonly Column<number>[];
}

/** Sums of a group, below the headings of the columns. */
function Sums({ bytes, requested, columns }: SumsProps) {
  return (
    <>
      <span style={{ gridColumn: gridColumnOf(columns, "size") }} title={formatExact(bytes)}>
        {formatBytes(bytes)}
      </span>
      {columns.some(({ key }) => key === "requested") && (
        <span class="muted" style={{ gridColumn: gridColumnOf(columns, "requested") }}>
          {requested !== null && <Bytes of={requested} />}
        </span>
      )}
    </>
  );
}

function Share({ part, whole }: { part: number; whole: number }) {
  const share = whole > 0 ? Math.min(Math.max(part / whole, 0), 1) : 0;
  return (
    <span class="share" style={{ "--share": `${100 * share}%` }}>
      {formatShare(part, whole)}
    </span>
  );
}
