import type { OverviewRow } from "../../payload/generated/answers";

/** A row of Overview with unremarkable values, for tests. */
export function overviewRow(id: string, more: Partial<OverviewRow> = {}): OverviewRow {
  return {
    id,
    kind: "program",
    title: id,
    run: "run",
    host: "host",
    memory: "HBM",
    axis: "PROGRAM_ORDER",
    length: 1,
    time_ns: null,
    end_ns: null,
    step: null,
    allocations: 1,
    peak_bytes: 100,
    peak_position: 0,
    reserved_bytes: 100,
    reported_peak_bytes: null,
    capacity_bytes: null,
    caveats: [],
    needed_bytes: 100,
    capacity_source: "",
    live: false,
    interval_ns: null,
    reason: null,
    headroom_bytes: null,
    role: null,
    part: null,
    remedy: null,
    ...more,
  };
}
