import type { JSX } from "preact";
import { formatBytes, formatCount, formatExact, formatShare } from "../../base/units";
import type { Line } from "../../layout/table_lines";
import type { SortKey } from "../../layout/table_order";
import { useWords } from "../words";
import type { ColumnView } from "./table_columns";

interface Props {
  line: Exclude<Line, { kind: "row" }>;
  /** All that is in use, where a group says its share of it; else null. */
  total: number | null;
  columns: ColumnView[];
  template: string;
  onToggle: () => void;
}

/** A heading over rows, which opens and closes. */
export function FoldLine({ line, total, columns, template, onToggle }: Props): JSX.Element {
  const words = useWords();
  const count = `${formatCount(line.count)} ${line.count === 1 ? words.item : words.items}`;
  const sums = line.kind === "group" && total !== null;
  return (
    <button
      class={`fold fold-${line.kind} ${sums ? "fold-sums" : ""}`}
      data-testid={`${line.kind}-line`}
      aria-expanded={line.open}
      style={sums ? { gridTemplateColumns: template } : {}}
      onClick={onToggle}
    >
      <span
        class="fold-label"
        style={sums ? across(columns) : {}}
        title={line.kind === "group" ? line.label : ""}
      >
        <span aria-hidden="true">{line.open ? "▾" : "▸"}</span>
        {/* Paths begin alike: where there is no room, their beginning gives way. */}
        <span class="from-end">
          <bdi>{line.kind === "small" ? "smaller than 16 KiB" : line.label}</bdi>
        </span>
      </span>
      {sums ? (
        <Sums {...{ bytes: line.bytes, requested: line.requested, count, total, columns }} />
      ) : (
        <span class="muted">
          {count}, <span title={formatExact(line.bytes)}>{formatBytes(line.bytes)}</span>
        </span>
      )}
    </button>
  );
}

interface RestProps {
  bytes: number;
  total: number;
  columns: ColumnView[];
  template: string;
}

/** What is in use and has no row, so that the lines add up to the curve. */
export function RestLine({ bytes, total, columns, template }: RestProps): JSX.Element {
  const words = useWords();
  return (
    <div
      class="fold fold-group fold-sums"
      role="row"
      data-testid="unexplained"
      style={{ gridTemplateColumns: template }}
    >
      <span class="fold-label" style={across(columns)}>
        {words.rest}
      </span>
      <Sums {...{ bytes, requested: null, count: "", total, columns }} />
    </div>
  );
}

/** A label has the columns before the sizes. */
function across(columns: ColumnView[]): { gridColumn: string } {
  return { gridColumn: `1 / ${trackOf(columns, "size")}` };
}

/** The number that CSS has for a column's track. */
function trackOf(columns: ColumnView[], key: SortKey): number {
  return columns.findIndex((column) => column.key === key) + 1;
}

interface SumsProps {
  bytes: number;
  /** Null where it is not known. */
  requested: number | null;
  /** Of what, in words. */
  count: string;
  total: number;
  columns: ColumnView[];
}

/** What a group adds up to, under the headings of what its rows have; its share and count have what is right of them. */
function Sums({ bytes, requested, count, total, columns }: SumsProps): JSX.Element {
  return (
    <>
      <span style={{ gridColumn: trackOf(columns, "size") }} title={formatExact(bytes)}>
        {formatBytes(bytes)}
      </span>
      <span class="muted" style={{ gridColumn: trackOf(columns, "unpadded") }}>
        {requested !== null && <span title={formatExact(requested)}>{formatBytes(requested)}</span>}
      </span>
      <span class="fold-rest" style={{ gridColumn: `${trackOf(columns, "unpadded") + 1} / -1` }}>
        <Share part={bytes} whole={total} />
        <span class="muted">{count}</span>
      </span>
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
