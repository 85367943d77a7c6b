import { createClient } from "./generated/client";
import { readLifetimes } from "./recording/lifetimes";
import { readFirstView, readRecordingData, readUsage } from "./recording/recording";
import { readTimeTables } from "./recording/times";
import { readFleet } from "./responses/fleet";
import { readForest } from "./responses/forest";
import { type Fetch, onlyChanges, type Signal } from "./server";
import type { Tables } from "./tables/tables";

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
    memoryViewer: decoded(client.memoryViewer, readFirstView),
    memoryProfile: decoded(client.memoryProfile, readFirstView),
    lifetimes: decoded(client.lifetimes, readLifetimes),
    fleet: decoded(client.fleet, readFleet),
    rows: decoded(client.rows, readRecordingData),
    usage: decoded(client.usage, (tables) => readUsage(tables.table("usage"))),
    timeTables: decoded(client.timeTables, readTimeTables),
    tree: decoded(client.tree, readForest),
  };
}

/** Return a request whose tables are decoded. */
function decoded<Query, Value>(
  request: (query: Query, signal: Signal) => Promise<Tables>,
  decode: (tables: Tables) => Value,
) {
  return async (query: Query, signal: Signal): Promise<Value> => decode(await request(query, signal));
}

export type Api = ReturnType<typeof createApi>;
export type Changes = ReturnType<Api["changes"]>;
