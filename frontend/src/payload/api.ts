import type { AdviceList, Pasted } from "./advice";
import type { CompareQuery, Comparison } from "./comparison";
import type { CallGraph, CallGraphQuery, DeviceProfile, Growth } from "./device_profile";
import type { By, Forest } from "./forest";
import { readForest } from "./forest";
import type { Overview } from "./overview";
import type { Everything, FirstView, Summary, Usage } from "./recording";
import { readEverything, readFirstView, readUsage } from "./recording";
import type { Tables } from "./tables";
import { decodeTables } from "./tables";

export interface Runs {
  logdir: string;
  runs: { name: string; hosts: string[] }[];
  /** Why there is nothing and what to do, when there is nothing. */
  message: string | null;
}

/** A file that could not be read, and why. */
export interface Problem {
  file: string;
  text: string;
}

export interface Listing {
  recordings: Summary[];
  problems: Problem[];
  /** By host: why it has no recording over time. Empty where any host has one. */
  empty: Record<string, Reason>;
}

/** Why there is nothing, and what to do; the code is for programs. */
export interface Reason {
  code: string;
  text: string;
  remedy: string;
}

export interface Place {
  position: number;
  instruction: string;
}

export interface Frame {
  function: string;
  file: string;
  line: number;
}

export interface Sharer {
  row: number;
  name: string;
  size: number;
  defined: number;
  last_used: number;
  relation: string;
}

/** One buffer in full: what its row says, and what only api/details knows. */
export interface Details {
  row: number;
  name: string;
  op: string;
  op_name: string;
  role: number;
  size: number;
  unpadded: number;
  shape: string;
  dtype: string;
  region: { index: number; kind: string; size: number } | null;
  offset: number;
  defined: Place;
  last_used: Place;
  stack: Frame[];
  /** Of the event that freed it; empty where none is known. */
  freed_stack: Frame[];
  shares: Sharer[];
  shares_total: number;
  /** Of a runtime allocation that a program's execution made; null where none is known. */
  planned?: Planned | null;
}

interface Amount {
  allocations: number;
  bytes: number;
}

/** What executions of programs allocated, over all events, and which programs run at one of them. */
export interface Joins {
  at: number;
  executable: Amount;
  /** Of these what no planned memory was found for. */
  unjoined: Amount;
  programs: ({ recording: string; title: string; memory: string; running: boolean } & Amount)[];
}

/** What a program planned in an allocation that it made. */
export interface Planned {
  title: string;
  memory: string;
  kind: string;
  size: number;
  buffers: { row: number; name: string; op_name: string; size: number }[];
  buffers_total: number;
}

/** How one place's memory went from step to step. */
export interface Finding {
  verdict: string;
  sentence: string;
  row: number;
  site: string;
  shape: string;
  live_bytes: number;
}

export interface Leaks {
  /** Why nothing can be said; null where something can. */
  message: string | null;
  unit: string;
  steps: number;
  /** What a training loop carries from one iteration into the next, in sentences. */
  carried: string[];
  verdicts: Record<string, number>;
  findings: Finding[];
}

/** What went wrong, where, and what to do about it, as the backend words it. */
export class ApiError extends Error {
  constructor(
    readonly what: string,
    readonly where: string,
    readonly remedy: string,
  ) {
    super([what, where, remedy].filter((part) => part !== "").join(": "));
  }
}

/** What a page in one file holds: so many of the recordings that there were, along these axes. */
export interface Report {
  recordings: number;
  of: number;
  axes: string[];
}

export interface Api {
  /** Null where a server answers, which knows of everything. */
  report: Report | null;
  runs(signal: AbortSignal): Promise<Runs>;
  recordings(run: string, signal: AbortSignal): Promise<Listing>;
  overview(run: string, signal: AbortSignal): Promise<Overview>;
  memoryViewer(id: string, signal: AbortSignal): Promise<FirstView>;
  memoryProfile(id: string, signal: AbortSignal): Promise<FirstView>;
  rows(id: string, signal: AbortSignal): Promise<Everything>;
  usage(id: string, from: number, to: number, buckets: number, signal: AbortSignal): Promise<Usage>;
  details(id: string, row: number, signal: AbortSignal): Promise<Details>;
  leaks(id: string, signal: AbortSignal): Promise<Leaks>;
  joins(id: string, at: number, signal: AbortSignal): Promise<Joins>;
  tree(id: string, by: By, merge: boolean): Promise<Forest>;
  advice(id: string, signal: AbortSignal): Promise<AdviceList>;
  deviceProfile(id: string, signal: AbortSignal): Promise<DeviceProfile>;
  callGraph(query: CallGraphQuery, signal: AbortSignal): Promise<CallGraph>;
  growth(id: string, signal: AbortSignal): Promise<Growth>;
  compare(query: CompareQuery, signal: AbortSignal): Promise<Comparison>;
  paste(text: string, signal: AbortSignal): Promise<Pasted>;
}

/** Gets the answer of a route; ApiError where there is none. */
export type Ask = (
  route: string,
  query: Record<string, string | number>,
  signal: AbortSignal | null,
  sent?: RequestInit,
) => Promise<Response>;

/** Asks the backend below `base`, the URL of the folder the page was loaded from. */
export function askServer(base: string): Ask {
  return async (route, query, signal, sent = {}) => {
    const url = new URL(`api/${route}`, base);
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, String(value));
    const response = await fetch(url, { ...sent, signal }).catch((error: unknown) => {
      if (signal?.aborted === true) throw error;
      throw new ApiError("The server does not answer", url.host, "start it again, then reload this page");
    });
    if (!response.ok) throw await errorOf(response, route);
    return response;
  };
}

export function createApi(ask: Ask): Api {
  // Shapes are those the backend documents for each route; the tables check theirs column by column.
  const json = async (...call: Parameters<Ask>): Promise<unknown> => (await ask(...call)).json();
  const tables = async (...call: Parameters<Ask>): Promise<Tables> =>
    decodeTables(await (await ask(...call)).arrayBuffer());
  return {
    report: null,
    runs: async (signal) => (await json("runs", {}, signal)) as Runs,
    recordings: async (run, signal) => (await json("recordings", { run }, signal)) as Listing,
    overview: async (run, signal) => (await json("overview", { run }, signal)) as Overview,
    memoryViewer: async (id, signal) => readFirstView(await tables("memory_viewer", { id }, signal)),
    memoryProfile: async (id, signal) => readFirstView(await tables("memory_profile", { id }, signal)),
    rows: async (id, signal) => readEverything(await tables("rows", { id }, signal)),
    usage: async (id, from, to, buckets, signal) =>
      readUsage((await tables("usage", { id, from, to, buckets }, signal)).table("usage")),
    details: async (id, row, signal) => (await json("details", { id, row }, signal)) as Details,
    joins: async (id, at, signal) => (await json("joins", { id, at }, signal)) as Joins,
    leaks: async (id, signal) => (await json("leaks", { id }, signal)) as Leaks,
    tree: async (id, by, merge) => readForest(await tables("tree", { id, by, merge: Number(merge) }, null)),
    advice: async (id, signal) => (await json("advice", { id }, signal)) as AdviceList,
    deviceProfile: async (id, signal) => (await json("device_profile", { id }, signal)) as DeviceProfile,
    callGraph: async ({ base, fold, whole, ...query }, signal) =>
      (await json(
        "callgraph",
        { ...query, fold: Number(fold), whole: Number(whole), ...(base === "" ? {} : { base }) },
        signal,
      )) as CallGraph,
    growth: async (id, signal) => (await json("growth", { id }, signal)) as Growth,
    compare: async ({ a, b, at_a, at_b, by }, signal) =>
      (await json(
        "compare",
        { a, b, by, ...(at_a === null ? {} : { at_a }), ...(at_b === null ? {} : { at_b }) },
        signal,
      )) as Comparison,
    paste: async (text, signal) =>
      (await json("paste", {}, signal, { method: "POST", body: text })) as Pasted,
  };
}

async function errorOf(response: Response, route: string): Promise<ApiError> {
  try {
    const { error } = (await response.json()) as { error: { what: string; where: string; remedy: string } };
    return new ApiError(error.what, error.where, error.remedy);
  } catch {
    return new ApiError(`The server answered ${response.status} ${response.statusText}`, `api/${route}`, "");
  }
}
