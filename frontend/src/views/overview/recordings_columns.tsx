import type { JSX } from "preact";
import { formatBytes, formatCount, formatExact, formatShare } from "../../base/units";
import type { ConstantColumn } from "../../layout/table/constant_columns";
import { sameText } from "../../layout/table/constant_columns";
import type { OverviewKey } from "../../layout/overview/overview_table";
import type { OverviewRow } from "../../payload/generated/answers";
import type { AdviceById } from "../../payload/responses/overview";
import { recordingName, partText } from "../../payload/responses/overview";
import type { Column } from "../tables/data_table";
import { Middle } from "../widgets/middle";
import { Role } from "../widgets/role";

export interface OverviewColumn extends Column<OverviewKey> {
  /** `equal`: all rows that are folded into this one. */
  cell(row: OverviewRow, equal: readonly OverviewRow[]): JSX.Element | string;
}

const KINDS: Record<string, string> = {
  program: "Program",
  allocator: "Allocator over time",
  torch_snapshot: "PyTorch allocator over time",
  torch_timeline: "PyTorch categories over time",
  device_profile: "Device memory profile",
  oom: "Out of memory",
  watch: "Device memory over time",
};

const MIN_RATIO = 1.01;

/** Columns that are empty or equal in every row are left out; the headline names what is unknown. */
export function overviewColumns(
  rows: readonly OverviewRow[],
  advice: AdviceById,
  dark: boolean,
  onOpen: (row: OverviewRow) => void,
  pending: boolean,
): OverviewColumn[] {
  const says: Partial<Record<OverviewKey, boolean>> = {
    host: new Set(rows.map(({ host }) => host)).size > 1,
    memory: sameText(rows, ({ memory }) => memory) === null,
    needed: rows.some(({ needed_bytes, peak_bytes }) => needed_bytes > MIN_RATIO * peak_bytes),
    capacity: rows.some(({ capacity_bytes }) => capacity_bytes !== null),
    left: rows.some(({ headroom_bytes }) => headroom_bytes !== null),
    role: pending || rows.some(({ role }) => role !== null),
    part: pending || rows.some(({ part }) => part !== null),
  };
  return allColumns(advice, dark, onOpen, pending ? "…" : "–").filter(({ key }) => says[key] !== false);
}

/** Return the columns that are left out because they are the same in all rows. */
export function constantColumns(rows: readonly OverviewRow[]): ConstantColumn[] {
  const [host, memory] = [sameText(rows, (row) => row.host), sameText(rows, (row) => row.memory)];
  return (
    [
      ["Host", host],
      ["Memory", memory],
    ] as const
  ).flatMap(([heading, value]) => (value === null || value === "" ? [] : [[heading, value] as const]));
}

function allColumns(
  advice: AdviceById,
  dark: boolean,
  onOpen: (row: OverviewRow) => void,
  unknown: string,
): OverviewColumn[] {
  return [
    column("name", "Recording", "Compiled program, or allocator", "minmax(170px, 1.6fr)", (row, equal) => (
      <button
        class="link"
        data-testid="open-recording"
        title={`${KINDS[row.kind] ?? row.kind}: ${recordingName(row)}. Click to open it.`}
        onClick={(event) => {
          event.stopPropagation();
          onOpen(row);
        }}
      >
        <Middle
          text={equal.length > 1 ? `${recordingName(row)} ×${formatCount(equal.length)}` : recordingName(row)}
        />
      </button>
    )),
    column("memory", "Memory", "Memory space or device memory", "minmax(76px, .6fr)", (row) =>
      withTitle(row.memory),
    ),
    column("host", "Host", "Host that ran it", "minmax(80px, .7fr)", (row, equal) =>
      equal.length > 1 ? (
        <span
          title={equal.map(({ host }) => host).join("\n")}
        >{`${formatCount(equal.length)} equal hosts`}</span>
      ) : (
        withTitle(row.host)
      ),
    ),
    column("peak", "Peak", "Maximum of the live bytes", "76px", (row) => bytes(row.peak_bytes), true),
    column(
      "needed",
      "Needs",
      "Memory that must fit: what a program reserves, or an allocator's peak",
      "76px",
      (row) => bytes(row.needed_bytes),
      true,
    ),
    column(
      "capacity",
      "Capacity",
      "Size of the memory, and where the figure comes from",
      "80px",
      capacity,
      true,
    ),
    column(
      "left",
      "Left",
      "Capacity minus needed memory; the bar shows needed memory",
      "126px",
      headroom,
      true,
    ),
    column(
      "role",
      "Largest role",
      "The role with the most bytes at the peak",
      "minmax(130px, .9fr)",
      (row) =>
        row.role === null ? (
          <span class="muted">{unknown}</span>
        ) : (
          <span title={formatExact(row.role.bytes)}>
            <Role role={row.role.role} dark={dark} /> {formatShare(row.role.share, 1)}
          </span>
        ),
    ),
    column(
      "part",
      "Largest part",
      "Repeated layers merged; otherwise the largest scope, function or line",
      "minmax(130px, 1.1fr)",
      (row) => largestPart(row, unknown),
    ),
    column(
      "advice",
      "Best change",
      "The change that lowers the peak most, and the bytes it saves",
      "minmax(150px, 1.5fr)",
      (row) => topAdvice(row, advice),
    ),
  ];
}

function capacity(row: OverviewRow): JSX.Element {
  if (row.capacity_bytes === null)
    return (
      <span class="muted" title="Memory capacity is not recorded in this run.">
        unknown
      </span>
    );
  return (
    <span title={`${formatExact(row.capacity_bytes)}: ${row.capacity_source}`}>
      {formatBytes(row.capacity_bytes)}
    </span>
  );
}

function headroom(row: OverviewRow): JSX.Element {
  const { headroom_bytes: bytesLeft, needed_bytes: needed, capacity_bytes: whole } = row;
  if (bytesLeft === null) return <span class="muted">–</span>;
  const used = whole === null ? 1 : Math.min(needed / whole, 1);
  const level = bytesLeft < 0 ? "lacking" : used > TIGHT_SHARE ? "tight" : "";
  return (
    <span class={`room ${level}`} style={{ "--used": `${100 * used}%` }} title={formatExact(bytesLeft)}>
      {bytesLeft < 0 ? `${formatBytes(-bytesLeft)} over` : formatBytes(bytesLeft)}
    </span>
  );
}

/** Above 90%, fragmentation alone can cause an out-of-memory error. */
const TIGHT_SHARE = 0.9;

function largestPart(row: OverviewRow, unknown: string): JSX.Element {
  if (row.part === null) return <span class="muted">{unknown}</span>;
  const { name, bytes, share } = row.part;
  return (
    <span title={`${name}: ${formatBytes(bytes)}, ${formatShare(share, 1)} of the peak`}>
      {`${formatShare(share, 1)} ${partText(row)}`}
    </span>
  );
}

function topAdvice(row: OverviewRow, advice: AdviceById): JSX.Element {
  if (row.remedy !== null) return <span title={row.remedy}>{row.remedy}</span>;
  const found = advice.get(row.id);
  if (found === undefined) return <span class="muted" />;
  if (found === null) return <span class="muted">nothing found</span>;
  return (
    <span title={found.sentence}>
      <b>{`−${formatBytes(found.saving_bytes)}`}</b> {found.title}
    </span>
  );
}

function withTitle(text: string): JSX.Element {
  return <span title={text}>{text}</span>;
}

function bytes(count: number): JSX.Element {
  return <span title={formatExact(count)}>{formatBytes(count)}</span>;
}

function column(
  key: OverviewKey,
  heading: string,
  about: string,
  track: string,
  cell: OverviewColumn["cell"],
  numeric = false,
): OverviewColumn {
  return { key, heading, about, track, cell, numeric };
}
