import type { Run } from "./generated/answers";

/** Return a run of one host with the given fields. */
export function makeRun(more: Partial<Run>): Run {
  return {
    name: "train",
    hosts: ["a"],
    modified_ns: null,
    peak_bytes: null,
    by_host: false,
    sessions: 1,
    ...more,
  };
}
