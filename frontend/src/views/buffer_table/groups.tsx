import type { ComponentChildren, JSX } from "preact";
import { formatBytes, formatCounted, formatExact, formatShare } from "../../base/units";
import type { GroupKey, TableLine } from "../../layout/table/table_lines";
import { useTerms } from "../data/terms";
import { Bytes, type Column } from "../tables/columns";

const GROUPS: readonly (readonly [GroupKey, string])[] = [
  ["name", "name"],
  ["op_name", "function"],
  ["op", "region"],
  ["source", "source line"],
  ["stack", "stack"],
  ["step", "step of allocation"],
  ["shape", "shape"],
  ["dtype", "type"],
  ["role", "role"],
  ["none", "nothing"],
];

/** Choice of the grouping of an allocator's allocations. */
export function GroupChoice(props: {
  group: GroupKey;
  /** Groupings with more than one group. */
  keys: readonly GroupKey[];
  onPick: (group: GroupKey) => void;
}): JSX.Element {
  return (
    <label class="toggle">
      Grouped by
      <select
        data-testid="table-group"
        value={props.group}
        onChange={(event) => props.onPick(event.currentTarget.value as GroupKey)}
      >
        {GROUPS.filter(([key]) => props.keys.includes(key) || key === props.group).map(([key, label]) => (
          <option key={key} value={key}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

interface Props {
  line: Exclude<TableLine, { kind: "row" }>;
  /** Total in use, for a group's share; null to omit shares. */
  total: number | null;
  columns: readonly Column<number>[];
  template: string;
  onToggle: () => void;
}

/** Heading of a group; a click expands or collapses it. */
export function GroupLine({ line, total, columns, template, onToggle }: Props): JSX.Element {
  const terms = useTerms();
  const count = formatCounted(line.count, terms.item, terms.items);
  const sums = line.kind === "group" && total !== null;
  return (
    <GroupRow>
      <button
        class={`fold fold-${line.kind} ${sums ? "fold-sums" : ""}`}
        data-testid={`${line.kind}-line`}
        aria-expanded={line.open}
        style={sums ? { gridTemplateColumns: template } : {}}
        onClick={onToggle}
      >
        {sums && <Sums {...{ bytes: line.bytes, requested: line.requested, columns }} />}
        <span
          class="fold-label"
          style={sums ? spanFromName(columns) : {}}
          title={line.kind === "group" ? line.label : ""}
        >
          {sums && <Share part={line.bytes} whole={total} />}
          <span aria-hidden="true">{line.open ? "▾" : "▸"}</span>
          {/* Paths begin alike: where there is no room, their beginning gives way. */}
          <span class="from-end">
            <bdi>{line.kind === "small" ? "smaller than 16 KiB" : line.label}</bdi>
          </span>
          {sums && <span class="muted">{count}</span>}
        </span>
        {!sums && (
          <span class="muted">
            {count}, <Bytes of={line.bytes} />
          </span>
        )}
      </button>
    </GroupRow>
  );
}

/** Row with one cell: a grid may contain rows only. */
function GroupRow({ testid, children }: { testid?: string; children: ComponentChildren }): JSX.Element {
  return (
    <div role="row" data-testid={testid}>
      <div role="rowheader">{children}</div>
    </div>
  );
}

interface UnexplainedProps {
  bytes: number;
  total: number;
  columns: readonly Column<number>[];
  template: string;
}

/** Line for live bytes without a row, so that the lines add up to the curve. */
export function UnexplainedLine({ bytes, total, columns, template }: UnexplainedProps): JSX.Element {
  const terms = useTerms();
  return (
    <GroupRow testid="unexplained">
      <div class="fold fold-group fold-sums" style={{ gridTemplateColumns: template }}>
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
function Sums({ bytes, requested, columns }: SumsProps): JSX.Element {
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

function Share({ part, whole }: { part: number; whole: number }): JSX.Element {
  const share = whole > 0 ? Math.min(Math.max(part / whole, 0), 1) : 0;
  return (
    <span class="share" style={{ "--share": `${100 * share}%` }}>
      {formatShare(part, whole)}
    </span>
  );
}
