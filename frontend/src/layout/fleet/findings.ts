import type { FleetCapture } from "../../payload/generated/answers";

export type FindingKind = "missing" | "unreadable" | "oom" | "program" | "leak";

/** A finding about one host or several. */
export interface Finding {
  kind: FindingKind;
  hosts: string;
  count: number;
  text: string;
  /** Bytes that a leak adds in each step, or a program needs more than on most hosts; null if unknown. */
  bytes: number | null;
  /** Recording that shows it; null without one. */
  recording: string | null;
  /** Recording to compare it with; null without one. */
  usual: string | null;
  file: string;
}

const NONE = { bytes: null, recording: null, usual: null, file: "" };
const MAX_NAMES = 3;
/** The text with which fleet/summarize.py describes files of out-of-memory errors. */
const OOM = "out of memory: ";

/** Return the findings about the hosts of a capture: missing ones, files with problems, programs, and leaks. */
export function findingsOf(capture: FleetCapture): Finding[] {
  return [
    ...capture.missing_ranges.map(({ first, last, count }) => ({
      ...NONE,
      kind: "missing" as const,
      hosts: count === 1 ? first : `${first} – ${last}`,
      count,
      text: "no file of this host, which the numbers of the others imply",
    })),
    ...capture.problems.map(({ host, file, text }) => ({
      ...NONE,
      kind: text.startsWith(OOM) ? ("oom" as const) : ("unreadable" as const),
      hosts: host,
      count: 1,
      text,
      file,
    })),
    ...capture.other_programs.map((other) => ({
      ...NONE,
      kind: "program" as const,
      hosts: other.host,
      count: 1,
      text:
        other.recording === null
          ? `no ${other.module}, which most hosts have`
          : `${other.module} differs from that of most hosts: ${other.difference}`,
      bytes: difference(other.reserved_bytes, other.usual_reserved_bytes),
      recording: other.recording,
      usual: other.usual_recording,
    })),
    ...capture.programs.flatMap(({ module, hosts, problem }) =>
      problem === null
        ? []
        : [{ ...NONE, kind: "unreadable" as const, hosts: module, count: hosts, text: problem }],
    ),
    ...capture.leaks.map(({ hosts, bytes, recording, text }) => ({
      ...NONE,
      kind: "leak" as const,
      hosts: named(hosts),
      count: hosts.length,
      text,
      bytes,
      recording,
    })),
  ];
}

function difference(own: number | null, usual: number | null): number | null {
  return own === null || usual === null ? null : own - usual;
}

function named(hosts: readonly string[]): string {
  const more = hosts.length - MAX_NAMES;
  return hosts.slice(0, MAX_NAMES).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
