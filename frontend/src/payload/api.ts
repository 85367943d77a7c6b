import { type RecordingData, type FirstView, readRecordingData, readFirstView } from "./recording/recording";
import { readUsage, type Usage } from "./recording/usage";
import type { AdviceList, PasteResult } from "./responses/advice";
import type { CallGraph, CallGraphQuery } from "./responses/call_graph";
import type { CompareQuery, Comparison } from "./responses/comparison";
import type { Details } from "./responses/details";
import type { DeviceProfile, Growth } from "./responses/device_profile";
import { type Classification, type Forest, readForest } from "./responses/forest";
import type { Leaks } from "./responses/leaks";
import type { Overview } from "./responses/overview";
import type { Listing, Runs } from "./responses/runs";
import type { RuntimeToProgram } from "./responses/runtime_to_program";
import type { Fetch } from "./server";
import { decodeTables } from "./tables/decode";
import type { Tables } from "./tables/tables";

/** Contents of an offline report: how many of the run's recordings it includes, along which axes. */
export interface Report {
  recordings: number;
  of: number;
  axes: string[];
}

export interface Api {
  /** Null when a server responds: it has all recordings. */
  report: Report | null;
  runs(signal: AbortSignal): Promise<Runs>;
  recordings(run: string, signal: AbortSignal): Promise<Listing>;
  overview(run: string, signal: AbortSignal): Promise<Overview>;
  memoryViewer(id: string, signal: AbortSignal): Promise<FirstView>;
  memoryProfile(id: string, signal: AbortSignal): Promise<FirstView>;
  rows(id: string, signal: AbortSignal): Promise<RecordingData>;
  usage(id: string, from: number, to: number, buckets: number, signal: AbortSignal): Promise<Usage>;
  details(id: string, row: number, signal: AbortSignal): Promise<Details>;
  leaks(id: string, signal: AbortSignal): Promise<Leaks>;
  joins(id: string, at: number, signal: AbortSignal): Promise<RuntimeToProgram>;
  tree(id: string, by: Classification, merge: boolean): Promise<Forest>;
  advice(id: string, signal: AbortSignal): Promise<AdviceList>;
  deviceProfile(id: string, signal: AbortSignal): Promise<DeviceProfile>;
  callGraph(query: CallGraphQuery, signal: AbortSignal): Promise<CallGraph>;
  growth(id: string, signal: AbortSignal): Promise<Growth>;
  compare(query: CompareQuery, signal: AbortSignal): Promise<Comparison>;
  paste(text: string, signal: AbortSignal): Promise<PasteResult>;
}

export function createApi(ask: Fetch): Api {
  // The backend documents the JSON shape of each route. Tables are checked column by column when they are
  // read.
  const json = async (...call: Parameters<Fetch>): Promise<unknown> => (await ask(...call)).json();
  const tables = async (...call: Parameters<Fetch>): Promise<Tables> =>
    decodeTables(await (await ask(...call)).arrayBuffer());
  return {
    report: null,
    runs: async (signal) => (await json("runs", {}, signal)) as Runs,
    recordings: async (run, signal) => (await json("recordings", { run }, signal)) as Listing,
    overview: async (run, signal) => (await json("overview", { run }, signal)) as Overview,
    memoryViewer: async (id, signal) => readFirstView(await tables("memory_viewer", { id }, signal)),
    memoryProfile: async (id, signal) => readFirstView(await tables("memory_profile", { id }, signal)),
    rows: async (id, signal) => readRecordingData(await tables("rows", { id }, signal)),
    usage: async (id, from, to, buckets, signal) =>
      readUsage((await tables("usage", { id, from, to, buckets }, signal)).table("usage")),
    details: async (id, row, signal) => (await json("details", { id, row }, signal)) as Details,
    joins: async (id, at, signal) => (await json("joins", { id, at }, signal)) as RuntimeToProgram,
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
      (await json("paste", {}, signal, { method: "POST", body: text })) as PasteResult,
  };
}
