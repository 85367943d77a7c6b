import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Summary } from "../../payload/recording/summary";

/** What things are called: a program holds buffers at positions of its schedule, an allocator allocations at events. */
export interface Words {
  item: string;
  items: string;
  position: string;
  positions: string;
  /** What the x axis runs over. */
  whole: string;
  live: string;
  requested: string;
  /** What a size holds beside what was asked for. */
  excess: string;
  /** What the rows are in order of. */
  order: string;
  /** What the columns `op` and `op_name` of a row are. */
  op: string;
  opName: string;
  /** What a tree of that column is by. */
  byFunction: string;
  /** What a row without an `op` has of it; empty where that is not known. */
  noOp: string;
  /** What is in use and has no row. */
  rest: string;
}

export const PROGRAM_WORDS: Words = {
  item: "buffer",
  items: "buffers",
  position: "position",
  positions: "positions",
  whole: "program",
  live: "live",
  requested: "unpadded",
  excess: "padding",
  order: "program order",
  op: "Op",
  opName: "Op name",
  byFunction: "jitted function",
  noOp: "",
  rest: "not explained by any buffer",
};

export const ALLOCATOR_WORDS: Words = {
  item: "allocation",
  items: "allocations",
  position: "event",
  positions: "events",
  whole: "recording",
  live: "in use",
  requested: "requested",
  excess: "rounding",
  order: "order of events",
  op: "Region",
  opName: "Function",
  byFunction: "jitted function",
  noOp: "",
  rest: "stack, or not explained by any allocation",
};

/** Of PyTorch: tensors, whose pool and stream are the default ones where nothing else is said. */
export const TENSOR_WORDS: Words = {
  ...ALLOCATOR_WORDS,
  op: "Pool, stream",
  opName: "Marked as",
  byFunction: "mark",
  noOp: "the default ones",
  rest: "not explained by any allocation",
};

/** Of one moment: what an error or a snapshot lists. */
export const MOMENT_WORDS: Words = {
  item: "buffer",
  items: "buffers",
  position: "moment",
  positions: "moments",
  whole: "moment",
  live: "in use",
  requested: "unpadded",
  excess: "padding",
  order: "order in the file",
  op: "Op",
  opName: "Op name",
  byFunction: "jitted function",
  noOp: "",
  rest: "not listed",
};

/** Those of a recording along an axis. */
export function wordsOf({ axis, kind }: Summary): Words {
  if (axis !== "TIME") return PROGRAM_WORDS;
  return kind === "torch_snapshot" ? TENSOR_WORDS : ALLOCATOR_WORDS;
}

export const WordsContext = createContext(PROGRAM_WORDS);

export function useWords(): Words {
  return useContext(WordsContext);
}

/** At the beginning of a sentence or as a heading. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
