import { useMemo } from "preact/hooks";
import {
  formatBytes,
  formatBytesOf,
  formatCount,
  formatCounted,
  formatExact,
  formatLeft,
  formatShare,
} from "../../base/units";
import { type FoldedRow, foldHosts } from "../../layout/overview";
import { shortNames } from "../../layout/short_names";
import { sameText } from "../../layout/table/fields";
import type { OverviewRow } from "../../payload/generated/answers";
import { ROLES } from "../../payload/generated/constants";
import { type AdviceById, bestChange, partText, recordingName } from "../../payload/responses/names";
import { openRecording } from "../state/tabs";
import { store, useViewState } from "../state/view_state";
import { CellLink, type Column, column, Room, savedColumn } from "../tables/columns";
import { Table } from "../tables/table";
import { Toggle } from "../widgets/choice";
import { Middle, Role } from "../widgets/labels";

const KINDS: Record<string, string> = {
  program: "Program",
  allocator: "Allocator over time",
  torch_snapshot: "PyTorch allocator over time",
  torch_timeline: "PyTorch categories over time",
  device_profile: "Device memory profile",
  oom: "Out of memory",
  watch: "Device memory over time",
};

/** Columns that are empty or equal in every row are left out; the headline names what is unknown. */
export function overviewColumns(
  rows: readonly OverviewRow[],
  advice: AdviceById,
  onOpen: (row: OverviewRow) => void,
  pending: boolean,
): Column<FoldedRow>[] {
  const unknown = <span class="muted">{pending ? "…" : "–"}</span>;
  const bestOf = (id: string): ReturnType<typeof bestChange> => {
    const list = advice.get(id);
    return list === undefined ? null : bestChange(list);
  };
  const short = shortNames(rows.map(recordingName));
  const ifSome = (has: (row: OverviewRow) => boolean): "" | null => (rows.some(has) ? null : "");
  return [
    column<FoldedRow>("name", "name", "Recording", "Compiled program, or allocator", recordingName, {
      csv: "",
      track: "minmax(170px, 1.6fr)",
      cell: (row) => (
        <CellLink
          testid="open-recording"
          title={`${KINDS[row.kind] ?? row.kind}: ${recordingName(row)}. Click to open it.`}
          onClick={() => onOpen(row)}
        >
          <Middle
            text={short(recordingName(row)) + (isFolded(row) ? ` ×${formatCount(row.equal.length)}` : "")}
          />
        </CellLink>
      ),
    }),
    savedColumn("recording", ({ title }) => title),
    column("text", "memory", "Memory", "Memory space or device memory", ({ memory }) => memory, {
      track: "minmax(76px, .6fr)",
      constant: sameText(rows, ({ memory }) => memory),
    }),
    column("text", "host", "Host", "Host that ran it", ({ host }) => host, {
      track: "minmax(80px, .7fr)",
      constant: rows.length < 2 ? "" : sameText(rows, ({ host }) => host),
      cell: (row) =>
        isFolded(row) ? (
          <span title={row.equal.map(({ host }) => host).join("\n")}>
            {`${formatCount(row.equal.length)} equal hosts`}
          </span>
        ) : (
          <span title={row.host}>{row.host}</span>
        ),
    }),
    savedColumn("kind", ({ kind }) => kind),
    column("bytes", "peak", "Peak", "Maximum of the live bytes", (row) => row.peak_bytes, {
      csv: "peak_bytes",
      track: "76px",
    }),
    column(
      "bytes",
      "used",
      "Used of the limit",
      "Memory that must fit: what a program reserves, or an allocator's peak",
      (row) => row.needed_bytes,
      {
        csv: "needed_bytes",
        track: "minmax(168px, 1fr)",
        constant: ifSome((row) => row.headroom_bytes !== null),
        order: usedShare,
        cell: usedOfLimit,
      },
    ),
    savedColumn("capacity_bytes", (row) => row.capacity_bytes),
    savedColumn("left_bytes", (row) => row.headroom_bytes),
    column(
      "text",
      "role",
      "Largest role",
      "The role with the most bytes at the peak",
      ({ role }) => role && ROLES[role.role],
      {
        csv: "largest_role",
        track: "minmax(130px, .9fr)",
        constant: pending ? null : ifSome(({ role }) => role !== null),
        cell: ({ role }) =>
          role === null ? (
            unknown
          ) : (
            <span title={formatExact(role.bytes)}>
              <Role role={role.role} /> {formatShare(role.share, 1)}
            </span>
          ),
      },
    ),
    savedColumn("largest_role_bytes", ({ role }) => role && role.bytes),
    column(
      "text",
      "part",
      "Largest part",
      "Repeated layers merged; otherwise the largest scope, function or line",
      ({ part }) => part && part.name,
      {
        csv: "largest_part",
        track: "minmax(130px, 1.1fr)",
        constant: pending ? null : ifSome(({ part }) => part !== null),
        order: ({ part }) => part && part.share,
        cell: (row) => largestPart(row) ?? unknown,
      },
    ),
    savedColumn("largest_part_bytes", ({ part }) => part && part.bytes),
    column("text", "leak", "Leak", "Growth of a watched job's memory", ({ alarm }) => alarm, {
      track: "minmax(150px, 1.5fr)",
      constant: ifSome(({ alarm }) => alarm !== ""),
      cell: ({ alarm }) => (alarm === "" ? <span class="muted">–</span> : <span title={alarm}>{alarm}</span>),
    }),
    column(
      "text",
      "advice",
      "Best change",
      "The change that lowers the peak most, and the bytes it saves; or the changes with which a program fits",
      ({ id }) => bestOf(id)?.title ?? null,
      {
        track: "minmax(150px, 1.5fr)",
        order: ({ id }) => advice.get(id)?.advice.at(0)?.saving_bytes ?? null,
        cell: (row) => topAdvice(row, advice),
      },
    ),
    savedColumn("saving_bytes", ({ id }) => advice.get(id)?.advice.at(0)?.saving_bytes ?? null),
  ];
}

/** Return whether the line of a row is that of several. */
function isFolded(row: FoldedRow): row is Required<FoldedRow> {
  return row.equal !== undefined && row.equal.length > 1;
}

function usedShare({ headroom_bytes: left, needed_bytes: needed, capacity_bytes: whole }: OverviewRow) {
  return left === null || whole === null ? null : needed / whole;
}

function usedOfLimit(row: OverviewRow) {
  const { headroom_bytes: left, needed_bytes: needed, capacity_bytes: whole, capacity_source: source } = row;
  if (left === null)
    return (
      <span class="muted" title="Memory capacity is not recorded in this run.">
        unknown
      </span>
    );
  if (whole === null) return <span class="room lacking">{formatLeft(left)}</span>;
  const text = `${formatBytesOf(needed, whole)}, ${formatShare(needed, whole)}`;
  const rest = left < 0 ? formatLeft(left) : `${formatBytes(left)} left`;
  return <Room used={needed / whole} text={text} title={`${rest} of ${formatExact(whole)}: ${source}`} />;
}

function largestPart(row: OverviewRow) {
  if (row.part === null) return null;
  const { name, bytes, share } = row.part;
  return (
    <span title={`${name}: ${formatBytes(bytes)}, ${formatShare(share, 1)} of the peak`}>
      {`${formatShare(share, 1)} ${partText(row)}`}
    </span>
  );
}

function topAdvice(row: OverviewRow, advice: AdviceById) {
  if (row.remedy !== null) return <span title={row.remedy}>{row.remedy}</span>;
  const list = advice.get(row.id);
  if (list === undefined) return <span class="muted" />;
  const found = bestChange(list);
  if (found === null) return <span class="muted">nothing found</span>;
  return (
    <span title={found.about}>
      <b>{found.saving}</b> {found.title}
    </span>
  );
}

interface Props {
  rows: readonly OverviewRow[];
  /** Roles and parts of the rows are still to come. */
  pending: boolean;
  advice: AdviceById;
  run: string;
}

/**
 * Table of a run's recordings, in the server's order; a click or Enter opens one. Small memories are one line below it,
 * which opens them; a search finds them too.
 */
export function RecordingsTable({ rows, pending, advice, run }: Props) {
  const each = useViewState((state) => state.each_host);
  const isWhole = useViewState(
    (state) => state.small_memories || state.search !== "" || state.size_filter !== "",
  );
  const small = useMemo(() => rows.filter((row) => row.small), [rows]);
  const listed = useMemo(() => (isWhole ? rows : rows.filter((row) => !row.small)), [rows, isWhole]);
  const columns = useMemo(
    () => overviewColumns(listed, advice, openRecording, pending),
    [listed, advice, pending],
  );
  const equal = useMemo(() => listed.length - foldHosts(listed).length, [listed]);
  return (
    <section class="recordings-table" data-testid="recordings-table" aria-label="Recordings of the run">
      <Table
        columns={columns}
        open={(row) => openRecording(row)}
        rows={listed}
        bytes={(row) => row.peak_bytes}
        {...(each ? {} : { fold: foldHosts })}
        options={
          // Switch between a row for each host and one row for programs that are equal on several.
          equal > 0 || each ? (
            <Toggle
              label="each host"
              title={`${formatCounted(equal, "row")} of equal programs on other hosts`}
              on={each}
              onChange={(wanted) => store.set({ each_host: wanted })}
            />
          ) : undefined
        }
        label="Recordings"
        testid="recording-row"
        noun="recording"
        fileName={`${run.replaceAll("/", "_")}_overview.csv`}
      />
      {small.length > 0 && <SmallMemories small={small} />}
    </section>
  );
}

/** Line that opens and closes the memories below 1 % of the largest. */
function SmallMemories({ small }: { small: readonly OverviewRow[] }) {
  const open = useViewState((state) => state.small_memories);
  const count = formatCounted(small.length, "small recording");
  const most = formatBytes(Math.max(...small.map((row) => row.needed_bytes)));
  return (
    <button
      class="link small-memories"
      data-testid="small-memories"
      aria-expanded={open}
      onClick={() => store.set({ small_memories: !open })}
    >
      {open ? `Hide ${count}` : `Show ${count} below 1 % of the largest: up to ${most}`}
    </button>
  );
}
