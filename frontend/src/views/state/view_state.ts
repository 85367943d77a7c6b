import { createStore, useStore } from "../../base/store";
import { GROUP_KEYS } from "../../layout/table/table_lines";
import { truncateForUrl } from "../../layout/url_values";
import { CLASSIFICATIONS, COMPARE_BY, GRANULARITIES, TREND_BY } from "../../payload/generated/constants";
import type { FirstView } from "../../payload/recording/recording";
import { choice, type Field, flag, integer, privateField, type Reset, text, window } from "./fields";

/** Tabs of all recordings, and of one. */
export const TABS = [
  "overview",
  "compare",
  "fit",
  "fleet",
  "memory_viewer",
  "memory_profile",
  "snapshots",
] as const;
export type Tab = (typeof TABS)[number];

/**
 * The state of the page, one field a line: its type, its initial value, how a URL carries it, and when it is reset.
 * The type, the initial state and the URL are all derived from this table. Fields are written to the URL in this order.
 */
export const SCHEMA = {
  /**
   * All recordings of a run, programs as compiled, memory over time or at one moment, a comparison, a fit, or
   * the devices of all hosts. Empty: the page opens at what matters most.
   */
  tab: choice("tab", TABS, "", { isPlace: true }),
  /** Empty: the newest run, all hosts, the largest module, its largest memory space. */
  run: text("run", { isPlace: true }),
  host: text("host", { isPlace: true }),
  module: text("module", { isPlace: true, xprofNames: ["module_name", "moduleName"], ofProgram: true }),
  space: text("space", { isPlace: true, xprofNames: ["memory_space"], ofProgram: true }),
  /** Inspected position on the x axis; null is the peak. */
  position: integer("position", { reset: "recording", ofProgram: true }),
  /** Row numbers of api/rows: the selected row, the one under the pointer, and the current search match. */
  selected: integer("selected", { reset: "recording", ofProgram: true }),
  hovered: privateField<number | null>(null, { reset: "recording" }),
  search_match: privateField<number | null>(null, { reset: "recording" }),
  /** Position under the pointer, in the charts along the x axis. */
  pointed: privateField<number | null>(null, { reset: "recording" }),
  /** Visible part of the x axis in positions (fractions allowed), the same in all charts along it; null is all. */
  zoom: window("zoom", { reset: "recording" }),
  /** Part of the x axis whose live rows the breakdown and the table are about; null: the inspected position. */
  range: window("between", { reset: "recording" }),
  /** Visible part of the timeline's y axis in bytes; null is all. */
  timeline_zoom: window("yzoom", { reset: "recording" }),
  /** Visible part of the usage chart's y axis in bytes; null is set by `usage_range`. */
  usage_zoom: window("bytes", { reset: "recording" }),
  /** Regular expression shared by the timeline and the tables. */
  search: text("search"),
  /** Range of sizes that tables list, such as ">1MiB"; empty is all. */
  size_filter: text("size"),
  /**
   * Sort order of a table, as layout/url_values.ts writes it; empty is the table's own. A tree table has a field of
   * its own, since it can stand above another table.
   */
  sort: text("sort"),
  tree_sort: text("tree_sort"),
  /** Groups of a table, and nodes of a tree table, that differ from their initial state, expanded or collapsed. */
  expanded: text("opened", { reset: "recording", toUrl: truncateForUrl }),
  tree_expanded: text("tree_opened", { reset: "recording", toUrl: truncateForUrl }),
  /** List programs of equal hosts one by one. */
  each_host: flag("each_host"),
  /** List memories below 1 % of the largest, too. */
  small_memories: flag("small"),
  /** List buffers that share the memory of a live buffer, too. */
  show_sharing: flag("sharers"),
  /** "all" draws parameters, outputs and constants on the timeline, too. */
  timeline_regions: choice("show", ["temp", "all"], "temp"),
  /** Only the timeline, over the whole window. */
  timeline_only: flag("full", { xprofNames: ["view_memory_allocation_timeline"], ofProgram: true }),
  theme: privateField<"auto" | "light" | "dark">("auto"),
  /** Theme of the host or the system, which "auto" follows. */
  host_dark: privateField(false),
  /** Tab below the charts. */
  below: choice(
    "below",
    ["advice", "breakdown", "buffers", "time", "kernels", "growth", "programs"],
    "advice",
  ),
  /** Do not follow a running job. */
  paused: flag("paused"),
  /** X axis: equally spaced events of an allocator or positions of a program, or time. */
  axis: choice("axis", ["events", "time"], "events"),
  /** Top of an allocator's usage chart: the peak, the capacity, or the maximum of the visible part. */
  usage_range: choice("range", ["peak", "capacity", "fit"], "peak"),
  /** Lines of the usage chart that are not in their initial state, shown or hidden: layout/usage/usage_series.ts. */
  toggled_curves: text("curves"),
  /** Bytes of memory that the user assumes where a profile records no capacity; null: none. */
  capacity: integer("capacity"),
  /** Y axis of an allocator's timeline: stacked by age, each block at a fixed height, or addresses. */
  timeline_layout: choice("layout", ["age", "stacked", "address"], "age"),
  /** What a table groups its rows by; "auto": what most of their bytes have, source lines first. */
  group: choice("group", GROUP_KEYS, "auto"),
  /** Chart of what is live at the inspected position. */
  chart: choice("chart", ["flame", "sandwich", "treemap", "tree", "address"], "flame"),
  /** What trees classify rows by; "auto" depends on the kind of recording. */
  classification: choice("by", CLASSIFICATIONS, "auto"),
  /** Weight of a row in a tree: its bytes, or its bytes times its lifetime. */
  tree_weight: choice("weight", ["bytes", "time"], "bytes"),
  /** Merge repeated layers into one node. */
  merge_layers: flag("merge"),
  /** Bottom-up trees, from callee to caller. */
  invert_tree: flag("invert"),
  /** Show the common root frames of a flame graph, instead of folding them into one line. */
  root_frames: flag("roots"),
  /** Function whose callers and callees the sandwich shows; empty is the one that allocates most itself. */
  sandwich_function: text("around", { reset: "recording" }),
  /** Path of the node that a tree is zoomed to; empty is the root. */
  tree_node: text("node", { reset: "recording" }),
  /** Rows that all charts are restricted to, as layout/url_values.ts writes them; empty is all. */
  row_filter: text("only", { reset: "recording" }),
  /** What a node of a call graph is: a function, a line, ... */
  granularity: choice("calls", GRANULARITIES, "function"),
  /** Regular expressions that filter a call graph: pprof's options of these names. */
  focus: text("focus"),
  ignore: text("ignore"),
  hide: text("hide"),
  /** Include framework frames in a call graph. */
  framework_frames: flag("frames"),
  /** One call graph for all devices of a file. */
  all_devices: flag("whole"),
  /** Selected function of a call graph; empty is none. */
  selected_function: text("picked", { reset: "recording" }),
  /** Ids of the compared recordings, and their positions. Empty and null: chosen by the page. */
  a: text("a", { isPlace: true, reset: "comparison" }),
  b: text("b", { isPlace: true, reset: "comparison" }),
  at_a: integer("at_a", { reset: "comparison" }),
  at_b: integer("at_b", { reset: "comparison" }),
  /** What the steps of a comparison's waterfall are. */
  compare_by: choice("steps", COMPARE_BY, "role"),
  /** Kinds of change that the table of a comparison lists, joined by commas; empty is all. */
  change_kinds: text("kinds"),
  /** Selected change of a comparison, as layout/compare/changes.ts names it; empty is none. */
  selected_change: text("change", { reset: "recording" }),
  /** Step of the Fit tab, as payload/responses/fit.ts names it; empty is that of the most candidates. */
  fit_step: text("step", { isPlace: true }),
  /** Target and knobs whose peak the Fit chart shows by role; empty: chosen by the page. */
  fit_choice: text("choice"),
  /** Run of the candidate in the side panel; empty is none. */
  fit_candidate: text("candidate", { reset: "recording" }),
  /** Run of the candidate that is ticked, to be compared with the next one; empty is none. */
  fit_ticked: privateField(""),
  /** Memory that the Fleet tab is about; empty is the first one, that of the devices. */
  fleet_memory: text("fleet_memory"),
  /** Colors of the Fleet tab's cells: distance from the median, or share of capacity. */
  fleet_color: choice("fleet_color", ["median", "capacity"], "median"),
  /** Peaks in bytes that the Fleet tab is restricted to; null is all. */
  fleet_peaks: window("fleet_peaks"),
  /** List all devices of a fleet, not only the outliers. */
  fleet_all: flag("fleet_all"),
  /** Id of the selected device's recording; empty is none. */
  fleet_device: text("fleet_device", { reset: "recording" }),
  /** Points of the Fleet tab's trend; empty: it is closed, and captures are not read for it. */
  fleet_trend: choice("fleet_trend", TREND_BY, ""),
  /** Memory or program of the trend, as layout/fleet/trend.ts names it; empty is the first one. */
  fleet_series: text("fleet_series"),
  /** Id of the ticked device's recording, to be compared with the next one; empty is none. */
  fleet_ticked: privateField(""),
} as const;

type Schema = typeof SCHEMA;
export type StateKey = keyof Schema;

/** The state of the page: every chart reads it, and changes it for all others. */
export type ViewState = { [Key in StateKey]: Schema[Key] extends Field<infer Value> ? Value : never };

type ResetKey<R extends Reset> = {
  [Key in StateKey]: Schema[Key] extends { reset: R } ? Key : never;
}[StateKey];

export const STATE_KEYS = Object.keys(SCHEMA) as StateKey[];

function initialValues(keys: readonly StateKey[]): Partial<ViewState> {
  return Object.fromEntries(keys.map((key) => [key, SCHEMA[key].initial]));
}

function resetValues<R extends Reset>(reset: R): Pick<ViewState, ResetKey<R>> {
  const keys = STATE_KEYS.filter((key) => (SCHEMA[key] as Field<unknown>).reset === reset);
  return initialValues(keys) as Pick<ViewState, ResetKey<R>>;
}

export const initialState = initialValues(STATE_KEYS) as ViewState;

/** The only state of the page. main.tsx fills it from the URL before anything is shown. */
export const store = createStore(initialState);

/** Return the value that `select` picks from the state. The component renders again only when it changes. */
export function useViewState<S>(select: (state: ViewState) => S): S {
  return useStore(store, select);
}

const PLACE = STATE_KEYS.filter((key) => (SCHEMA[key] as Field<unknown>).isPlace);

/** Return a text for what a state is about. */
export function placeOf(state: ViewState): string {
  return JSON.stringify(PLACE.map((key) => state[key]));
}

/** Return true if two states are about the same thing: they differ in how it is shown only. */
export function isSamePlace(a: ViewState, b: ViewState): boolean {
  return PLACE.every((key) => a[key] === b[key]);
}

/** Initial values of the fields that belong to one recording and mean nothing in another. */
export const NEW_RECORDING = resetValues("recording");

/** Initial values of the fields that name what is compared. */
export const NEW_COMPARISON = resetValues("comparison");

/** Return the inspected position, by default the peak. Positions past the end, from a URL, are clamped. */
export function usePosition(view: FirstView): number {
  const position = useViewState((state) => state.position);
  return Math.min(position ?? view.peak, Math.max(view.length - 1, 0));
}
