import type { GroupKey } from "../../layout/grouping";
import type { StepsBy } from "../../payload/comparison";
import type { Granularity } from "../../payload/device_profile";
import type { By } from "../../payload/forest";

export const TABS = ["overview", "memory_viewer", "memory_profile", "snapshots", "compare"] as const;
export type Tab = (typeof TABS)[number];

/** What the page looks at: the one place that every chart reads and writes. */
export interface ViewState {
  /** Everything of a run, programs as compiled, memory over time, memory at one moment, or two of any of them. */
  tab: Tab;
  /** Empty: the newest run, every host, the largest module, its largest memory space. */
  run: string;
  host: string;
  module: string;
  space: string;
  /** Inspected position on the axis; null is the peak. */
  position: number | null;
  /** Row numbers of api/rows. */
  selected: number | null;
  hovered: number | null;
  match: number | null;
  /** Window of the x axis in positions (fractions allowed), shared by all charts along it; null is all. */
  zoom: readonly [number, number] | null;
  /** Window of the timeline's y axis in bytes; null is all. */
  yzoom: readonly [number, number] | null;
  /** Window of the usage chart's y axis in bytes; null is what `range` says. */
  bytes: readonly [number, number] | null;
  /** Regular expression shared by the timeline and the table. */
  search: string;
  /** Sizes that tables keep to, such as ">1MiB"; empty is all. */
  size: string;
  /** What a table is sorted by, as layout/sorting.ts writes it; empty is as each begins. */
  sort: string;
  /** Of the table of a tree, which may stand above another table. */
  tree_sort: string;
  /** Groups of a table, and nodes of the table of a tree, that are not as they begin, as layout/opened.ts has them. */
  opened: string;
  tree_opened: string;
  /** A program's buffers under a heading for each category, and with those inside memory that others are charged for. */
  grouped: boolean;
  sharers: boolean;
  /** "all" draws parameters, outputs and constants on the timeline too. */
  show: "temp" | "all";
  /** The timeline alone, over the whole window. */
  full: boolean;
  theme: "auto" | "light" | "dark";
  /** X axis of an allocator: an event as wide as the next, or as long as it lasted. */
  axis: "events" | "time";
  /** Top of an allocator's curve: the peak, all the memory there is, or just what is in sight. */
  range: "peak" | "capacity" | "fit";
  /** Curves of the usage chart that are not switched as they are at first, by layout/usage_series.ts. */
  curves: string;
  /** Y axis of an allocator's timeline: by age without gaps, packed at one height each, or where the bytes are. */
  layout: "age" | "stacked" | "address";
  /** What an allocator's table gathers its rows by. */
  group: GroupKey;
  /** How what is live at the inspected position is drawn. */
  chart: "bars" | "flame" | "treemap" | "tree" | "address";
  /** What trees classify rows by; "auto" is what says most of this kind of recording. */
  by: By | "auto";
  /** What a row weighs in a tree: its bytes, or these times how long it is held. */
  weight: "bytes" | "time";
  /** Layers that repeat as one node. */
  merge: boolean;
  /** Trees bottom-up: from the innermost frame to its callers. */
  invert: boolean;
  /** Path of the node that a tree is zoomed to; empty is all of it. */
  node: string;
  /** What one box of a call graph is. */
  calls: Granularity;
  /** Regular expressions that a call graph is confined by, as pprof's options of these names. */
  focus: string;
  ignore: string;
  hide: string;
  /** A call graph with the frames of frameworks. */
  frames: boolean;
  /** A call graph of all devices of a file together. */
  whole: boolean;
  /** The function that is looked at in a call graph; empty is none. */
  picked: string;
  /** Compared recordings by their ids, and the moments of them; empty and null: what is most like to be meant. */
  a: string;
  b: string;
  at_a: number | null;
  at_b: number | null;
  /** What the steps of a comparison are. */
  steps: StepsBy;
  /** Kinds of change that the table of a comparison keeps to, joined by commas; empty is all of them. */
  kinds: string;
  /** What of a comparison is looked at, as layout/looked_at.ts names it; empty is nothing. */
  change: string;
  /** Rows that all charts are confined to, as layout/row_filter.ts writes them; empty is all of them. */
  only: string;
}

/** What belongs to one recording and means nothing in another. */
export const FRESH = {
  position: null,
  selected: null,
  hovered: null,
  match: null,
  zoom: null,
  yzoom: null,
  bytes: null,
  node: "",
  only: "",
  picked: "",
  change: "",
  opened: "",
  tree_opened: "",
} as const;

/** What is compared, before anything is chosen. */
export const NO_PAIR = { a: "", b: "", at_a: null, at_b: null } as const;

export const initialState: ViewState = {
  tab: "overview",
  run: "",
  host: "",
  module: "",
  space: "",
  position: null,
  selected: null,
  hovered: null,
  match: null,
  zoom: null,
  yzoom: null,
  bytes: null,
  search: "",
  size: "",
  sort: "",
  tree_sort: "",
  opened: "",
  tree_opened: "",
  grouped: false,
  sharers: false,
  show: "temp",
  full: false,
  theme: "auto",
  axis: "events",
  range: "peak",
  curves: "",
  layout: "age",
  group: "name",
  chart: "bars",
  by: "auto",
  weight: "bytes",
  merge: false,
  invert: false,
  node: "",
  only: "",
  calls: "function",
  focus: "",
  ignore: "",
  hide: "",
  frames: false,
  whole: false,
  picked: "",
  ...NO_PAIR,
  steps: "role",
  kinds: "",
  change: "",
};
