import { type Api, createApi, type Report } from "./api";
import type {
  AllRuntimeToProgram,
  Details,
  PlannedAllocation,
  RuntimeToProgram,
  SchedulePoint,
  Sharer,
  StackFrame,
} from "./generated/answers";
import type { UsageQuery } from "./generated/client";
import { DEFAULT_BUCKETS, MAX_SHARERS, ROLES, SAME_BUFFER, SAME_BYTES } from "./generated/constants";
import { readUsage, type RecordingData, type Usage } from "./recording/recording";
import { ApiError, type Fetch, requestJson, requestTables } from "./server";
import type { ColumnsOf, Tables } from "./tables/tables";

/**
 * Responses that an offline report computes in the page, for one window, row or position. A report contains
 * the data of all of them. Each function returns what the server's route of that name returns.
 */

/**
 * Reduce the usage of all positions to at most `buckets` buckets over positions [from, to). Peaks and valleys are kept.
 */
export function usageWindow(
  allPositions: Usage,
  { from = 0, to = allPositions.length, buckets = DEFAULT_BUCKETS }: Omit<UsageQuery, "id">,
): Usage {
  const width = Math.max(1, Math.ceil((to - from) / buckets));
  const length = Math.ceil((to - from) / width);
  const extremes = (values: Float64Array, better: (a: number, b: number) => boolean): Float64Array =>
    Float64Array.from({ length }, (_, bucket) => {
      const first = from + bucket * width;
      let found = NaN;
      for (let at = first; at < Math.min(first + width, to); at++)
        if (Number.isNaN(found) || better(values[at], found)) found = values[at];
      return found;
    });
  const maxOf = (values: Float64Array): Float64Array => extremes(values, (a, b) => a > b);
  const minOf = (values: Float64Array): Float64Array => extremes(values, (a, b) => a < b);
  return {
    length,
    position: Int32Array.from({ length }, (_, bucket) => from + bucket * width),
    live_max: maxOf(allPositions.live_max),
    live_min: minOf(allPositions.live_min),
    unpadded_max: maxOf(allPositions.unpadded_max),
    unpadded_min: minOf(allPositions.unpadded_min),
    reported: allPositions.reported.map((curve) => ({
      key: curve.key,
      max: maxOf(curve.max),
      min: minOf(curve.min),
    })),
  };
}

/** Row data beyond the columns of api/rows: leaves in a tree of stack frames, and planned allocations; -1 is none. */
const DETAIL_COLUMNS = { stack: "i32", freed_stack: "i32", planned: "i32" } as const;
const FRAME_COLUMNS = { parent: "i32", function: "text", file: "text", line: "i32" } as const;

interface DetailTables extends ColumnsOf<typeof DETAIL_COLUMNS> {
  plans: readonly PlannedAllocation[];
  frames: ColumnsOf<typeof FRAME_COLUMNS>;
}

export function readDetailTables(tables: Tables): DetailTables {
  return {
    ...tables.table("rows").read(DETAIL_COLUMNS),
    plans: (tables.meta as { planned: PlannedAllocation[] }).planned,
    frames: tables.table("frames").read(FRAME_COLUMNS),
  };
}

export function bufferDetails(
  { rows, regions, program }: RecordingData,
  tables: DetailTables,
  row: number,
): Details {
  const region = rows.region[row];
  const sharers = findSharers(rows, row);
  // An allocator's positions are events, which have no instruction.
  const place = (position: number): SchedulePoint => ({
    position,
    instruction: program.unexplained === null && position >= 0 ? program.name.at(position) : "",
  });
  return {
    row,
    name: rows.name.at(row),
    op: rows.op.at(row),
    op_name: rows.op_name.at(row),
    role: ROLES[rows.role[row]],
    shape: rows.shape.at(row),
    dtype: rows.dtype.at(row),
    size_bytes: rows.size[row],
    requested_bytes: rows.requested[row],
    region:
      region < 0
        ? null
        : { index: regions.index[region], kind: regions.kind.at(region), size_bytes: regions.size[region] },
    offset_bytes: rows.offset[row],
    allocated_at: rows.start[row],
    freed_at: rows.end[row],
    defined: place(rows.defined[row]),
    last_used: place(rows.last_used[row]),
    source: rows.source.at(row),
    stack: readCallStack(tables.frames, tables.stack[row]),
    freed_stack: readCallStack(tables.frames, tables.freed_stack[row]),
    shares: sharers.slice(0, MAX_SHARERS),
    shares_total: sharers.length,
    planned: tables.plans[tables.planned[row]] ?? null,
  };
}

/** Return the frames of a call stack, innermost first. A cycle in a broken file ends the stack. */
function readCallStack(frames: DetailTables["frames"], leaf: number): StackFrame[] {
  const seen = new Set<number>();
  for (let at = leaf; at >= 0 && at < frames.parent.length && !seen.has(at); at = frames.parent[at])
    seen.add(at);
  return [...seen].map((at) => ({
    function: frames.function.at(at),
    file: frames.file.at(at),
    line: frames.line[at],
  }));
}

/**
 * Return all other rows of the same region whose bytes overlap this row's, in order of use; empty if the
 * address is unknown.
 */
function findSharers(rows: RecordingData["rows"], row: number): Sharer[] {
  const { region, offset, size, canonical, defined, last_used } = rows;
  if (region[row] < 0 || offset[row] < 0) return [];
  const end = offset[row] + size[row];
  const found: Sharer[] = [];
  for (let other = 0; other < rows.length; other++)
    if (
      region[other] === region[row] &&
      other !== row &&
      offset[other] < end &&
      offset[row] < offset[other] + size[other]
    )
      found.push({
        row: other,
        name: rows.name.at(other),
        size_bytes: size[other],
        defined: defined[other],
        last_used: last_used[other],
        relation: canonical[other] === canonical[row] ? SAME_BUFFER : SAME_BYTES,
      });
  return found.sort((a, b) => a.defined - b.defined);
}

export function runtimeToProgramAt(
  { start, answer, answers }: AllRuntimeToProgram,
  at: number,
): RuntimeToProgram {
  const next = start.findIndex((position) => position > at);
  return { ...answers[answer[next < 0 ? start.length - 1 : next - 1]], at };
}

/**
 * Offline reports: the page in one file. The document contains the page's files and the responses to all its
 * requests, in elements that browsers neither run nor display. Responses are gzip in base64, so no name from
 * a profile becomes markup.
 */

const INDEX = "script[data-report]";
const ANSWERS = "script[data-answer]";
const FILES = "script[data-file]";

/** Index of the element that contains the response to a request. */
interface Index extends Report {
  answers: Record<string, number | undefined>;
}

export function isReport(): boolean {
  return document.querySelector(INDEX) !== null;
}

/** Return the URL of one of the page's files; in a report, a blob URL with the file's contents. */
export function fileUrl(url: string): string {
  const blocks = [...document.querySelectorAll<HTMLElement>(FILES)];
  const block = blocks.find(({ dataset }) => url.endsWith(`/${dataset["file"]}`));
  if (block === undefined) return url;
  const type = url.endsWith(".css") ? "text/css" : "text/javascript";
  return URL.createObjectURL(new Blob([decodeBase64(block)], { type }));
}

/** Return an API that reads the document, or null if the page is not a report. */
export async function reportApi(): Promise<Api | null> {
  const index = document.querySelector(INDEX);
  if (index === null) return null;
  const { answers, ...report } = (await decompress(index).json()) as Index;
  const fetch = fetchFromDocument(answers);
  const api = createApi(fetch);
  const all = {
    rows: memoizeLast((id) => api.rows({ id }, null)),
    details: memoizeLast(async (id) => readDetailTables(await requestTables(fetch, "details", { id }, null))),
    usage: memoizeLast(async (id) =>
      readUsage((await requestTables(fetch, "usage", { id }, null)).table("usage")),
    ),
    joins: memoizeLast((id) => requestJson<AllRuntimeToProgram>(fetch, "joins", { id }, null)),
  };
  return {
    ...api,
    report,
    rows: ({ id }) => all.rows(id),
    usage: async (query) => usageWindow(await all.usage(query.id), query),
    details: async ({ id, row }) => bufferDetails(await all.rows(id), await all.details(id), row),
    joins: async ({ id, at }) => runtimeToProgramAt(await all.joins(id), at),
  };
}

function fetchFromDocument(answers: Index["answers"]): Fetch {
  const blocks = document.querySelectorAll(ANSWERS);
  return (route, query) => {
    const parameters = Object.entries(query).map(([name, value]) => `${name}=${value}`);
    const number = answers[[route, ...parameters.sort()].join("&")];
    return number === undefined
      ? Promise.reject(
          new ApiError("Not included in this report", `api/${route}`, "open the original profile"),
        )
      : Promise.resolve(decompress(blocks[number]));
  };
}

function decodeBase64(block: Element): Uint8Array<ArrayBuffer> {
  const text = atob(block.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function decompress(block: Element): Response {
  return new Response(new Blob([decodeBase64(block)]).stream().pipeThrough(new DecompressionStream("gzip")));
}

/** Cache the last response: the page shows one recording and requests the same data many times. */
function memoizeLast<T>(read: (id: string) => Promise<T>): (id: string) => Promise<T> {
  let last: { id: string; answer: Promise<T> } | null = null;
  return (id) => (last?.id === id ? last : (last = { id, answer: read(id) })).answer;
}
