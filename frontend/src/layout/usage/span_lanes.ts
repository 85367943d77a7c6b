import {
  ANNOTATION_SPAN,
  EXECUTION_SPAN,
  OUT_OF_MEMORY_SPAN,
  STEP_SPAN,
} from "../../payload/generated/constants";
import type { Spans } from "../../payload/recording/recording";
import { stepAt } from "../axis";

/** Spans in as few lanes as possible without overlap. Each kind has its own lanes. */
interface SpanLanes {
  /** Lane of each span, 0 at the top. */
  lane: Int32Array;
  count: number;
  /** Kinds that occur, and the first lane of each, from the top. */
  kinds: readonly { kind: number; first: number }[];
}

/** Deeper nesting indicates a broken file. Spans beyond it share the last lane. */
const MAX_LANES = 256;

/** From the top: failures, then the longest spans. */
const KINDS = [OUT_OF_MEMORY_SPAN, STEP_SPAN, EXECUTION_SPAN, ANNOTATION_SPAN] as const;

/** Assign each span to the first free lane of its kind, in order of start, longer spans first. */
export function layoutSpanLanes({ length, kind, start_ns, end_ns }: Spans): SpanLanes {
  const order = Array.from({ length }, (_, span) => span).sort(
    (a, b) => start_ns[a] - start_ns[b] || end_ns[b] - end_ns[a],
  );
  const lane = new Int32Array(length);
  const kinds: { kind: number; first: number }[] = [];
  let count = 0;
  for (const one of KINDS) {
    const ends: number[] = [];
    for (const span of order) {
      if (kind[span] !== one) continue;
      let free = ends.findIndex((end) => end <= start_ns[span]);
      if (free < 0) free = Math.min(ends.length, MAX_LANES - 1);
      ends[free] = end_ns[span];
      lane[span] = count + free;
    }
    if (ends.length > 0) kinds.push({ kind: one, first: count });
    count += ends.length;
  }
  return { lane, count, kinds };
}

/** Return the number of spans in lanes `first` and below. */
export function countSpansFrom({ lane }: SpanLanes, first: number): number {
  return lane.reduce((count, of) => count + (of >= first ? 1 : 0), 0);
}

/** Return the position at a time, with its fraction; `times` are the positions' times. */
export function positionOfTime(times: Float64Array, ns: number): number {
  const last = times.length - 1;
  if (last < 0 || ns <= times[0]) return 0;
  if (ns >= times[last]) return last + 1;
  const index = stepAt(times, ns);
  const width = times[index + 1] - times[index];
  return index + (width > 0 ? (ns - times[index]) / width : 0);
}
