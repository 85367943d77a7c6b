import { createContext } from "preact";
import { useContext } from "preact/hooks";

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
  rest: "stack, or not explained by any allocation",
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
  rest: "not listed",
};

export const WordsContext = createContext(PROGRAM_WORDS);

export function useWords(): Words {
  return useContext(WordsContext);
}

/** At the beginning of a sentence or as a heading. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
