import {
  createClient,
  type FleetQuery,
  type LifetimesQuery,
  type MemoryProfileQuery,
  type MemoryViewerQuery,
  type RowsQuery,
  type TimeTablesQuery,
  type TreeQuery,
  type UsageQuery,
} from "./generated/client";
import { readLifetimes } from "./recording/lifetimes";
import { readFirstView, readRecordingData, readUsage } from "./recording/recording";
import { readTimeTables } from "./recording/times";
import { readFleet } from "./responses/fleet";
import { readForest } from "./responses/forest";
import { type Fetch, onlyChanges, type Signal } from "./server";

/** The contents of an offline report: recordings of the run it was made from, and their axes. */
export interface Report {
  recordings: number;
  of: number;
  axes: string[];
}

/** The generated client, with tables decoded for the page. `report` is null if a server answers. */
export function createApi(fetch: Fetch) {
  const client = createClient(fetch);
  return {
    ...client,
    report: null as Report | null,
    /** A client that rejects with Unchanged while its last answer to a question is still up to date. */
    changes: () => createClient(onlyChanges(fetch)),
    /** Fetch the file of a run's report. */
    downloadReport: (run: string) => fetch("report", { run }, null),
    memoryViewer: async (query: MemoryViewerQuery, signal: Signal) =>
      readFirstView(await client.memoryViewer(query, signal)),
    memoryProfile: async (query: MemoryProfileQuery, signal: Signal) =>
      readFirstView(await client.memoryProfile(query, signal)),
    lifetimes: async (query: LifetimesQuery, signal: Signal) =>
      readLifetimes(await client.lifetimes(query, signal)),
    fleet: async (query: FleetQuery, signal: Signal) => readFleet(await client.fleet(query, signal)),
    rows: async (query: RowsQuery, signal: Signal) => readRecordingData(await client.rows(query, signal)),
    usage: async (query: UsageQuery, signal: Signal) =>
      readUsage((await client.usage(query, signal)).table("usage")),
    timeTables: async (query: TimeTablesQuery, signal: Signal) =>
      readTimeTables(await client.timeTables(query, signal)),
    tree: async (query: TreeQuery, signal: Signal) => readForest(await client.tree(query, signal)),
  };
}

export type Api = ReturnType<typeof createApi>;
export type Changes = ReturnType<Api["changes"]>;
