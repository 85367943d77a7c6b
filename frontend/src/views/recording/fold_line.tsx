import type { JSX } from "preact";
import { formatBytes, formatCount, formatExact, formatShare } from "../../base/units";
import type { Line } from "../../layout/table_lines";
import { useWords } from "../words";

interface Props {
  line: Exclude<Line, { kind: "row" }>;
  /** All that is in use, where a group says its share of it; else null. */
  total: number | null;
  onToggle: () => void;
}

/** A heading over rows, which opens and closes. */
export function FoldLine({ line, total, onToggle }: Props): JSX.Element {
  const words = useWords();
  const count = `${formatCount(line.count)} ${line.count === 1 ? words.item : words.items}`;
  const bytes = <span title={formatExact(line.bytes)}>{formatBytes(line.bytes)}</span>;
  const sums = line.kind === "group" && total !== null;
  return (
    <button
      class={`fold fold-${line.kind} ${sums ? "fold-sums" : ""}`}
      data-testid={`${line.kind}-line`}
      aria-expanded={line.open}
      onClick={onToggle}
    >
      <span class="fold-label" title={line.kind === "group" ? line.label : ""}>
        <span aria-hidden="true">{line.open ? "▾" : "▸"}</span>
        {/* Paths begin alike: where there is no room, their beginning gives way. */}
        <span class="from-end">
          <bdi>{line.kind === "small" ? "smaller than 16 KiB" : line.label}</bdi>
        </span>
      </span>
      {sums ? (
        <>
          <span class="muted">{count}</span>
          <span>{bytes}</span>
          <span class="muted">
            {words.requested} {formatBytes(line.requested)}
          </span>
          <Share part={line.bytes} whole={total} />
        </>
      ) : (
        <span class="muted">
          {count}, {bytes}
        </span>
      )}
    </button>
  );
}

/** What is in use and has no row, so that the lines add up to the curve. */
export function RestLine({ bytes, total }: { bytes: number; total: number }): JSX.Element {
  const words = useWords();
  return (
    <div class="fold fold-group fold-sums" role="row" data-testid="unexplained">
      <span class="fold-label">{words.rest}</span>
      <span />
      <span title={formatExact(bytes)}>{formatBytes(bytes)}</span>
      <span />
      <Share part={bytes} whole={total} />
    </div>
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
