import { readParts, writeParts } from "../../base/url_state";
import type { Store } from "../../base/store";
import { GROUP_KEYS } from "../../layout/grouping";
import { openedInUrl } from "../../layout/opened";
import { STEPS } from "../../payload/comparison";
import { GRANULARITIES } from "../../payload/device_profile";
import { BYS } from "../../payload/forest";
import { hostWindow } from "../browser/host_window";
import type { ViewState } from "./view_state";
import { initialState, TABS } from "./view_state";

/** Keys of the state that a URL carries. What is under the pointer or merely the current match is not a place. */
const KEYS = [
  "tab",
  "run",
  "host",
  "module",
  "space",
  "position",
  "selected",
  "zoom",
  "yzoom",
  "bytes",
  "search",
  "size",
  "sort",
  "tree_sort",
  "opened",
  "tree_opened",
  "grouped",
  "sharers",
  "show",
  "full",
  "axis",
  "range",
  "curves",
  "layout",
  "group",
  "chart",
  "by",
  "weight",
  "merge",
  "invert",
  "node",
  "only",
  "calls",
  "focus",
  "ignore",
  "hide",
  "frames",
  "whole",
  "picked",
  "a",
  "b",
  "at_a",
  "at_b",
  "steps",
  "kinds",
  "change",
] as const;
type Key = (typeof KEYS)[number];

/** Keys that hold one of a few words. */
const CHOICES: readonly (readonly [Key, readonly string[]])[] = [
  ["tab", TABS],
  ["show", ["temp", "all"]],
  ["axis", ["events", "time"]],
  ["range", ["peak", "capacity", "fit"]],
  ["layout", ["age", "stacked", "address"]],
  ["group", GROUP_KEYS],
  ["chart", ["bars", "flame", "treemap", "tree", "address"]],
  ["by", BYS],
  ["weight", ["bytes", "time"]],
  ["calls", GRANULARITIES],
  ["steps", STEPS],
];

const TEXTS = [
  "run",
  "host",
  "module",
  "space",
  "search",
  "size",
  "sort",
  "tree_sort",
  "opened",
  "tree_opened",
  "curves",
  "node",
  "only",
  "focus",
  "ignore",
  "hide",
  "picked",
  "a",
  "b",
  "kinds",
  "change",
] as const;

const KNOWN: ReadonlySet<string> = new Set(KEYS);

/** What XProf's own links call the same things. */
const ALIASES: Record<string, Key> = {
  module_name: "module",
  moduleName: "module",
  memory_space: "space",
  view_memory_allocation_timeline: "full",
};

/** The state as fragment values; what is as it begins is left out. */
export function toValues(state: ViewState): Map<string, string> {
  const values = new Map<string, string>();
  for (const key of KEYS) {
    const value = state[key];
    if (value === null || value === initialState[key]) continue;
    const text = Array.isArray(value) ? value.join(",") : String(value);
    values.set(key, key === "opened" || key === "tree_opened" ? openedInUrl(text) : text);
  }
  return values;
}

/** A state from fragment values; what does not read as it should is as at the start. */
export function fromValues(values: ReadonlyMap<string, string>): Partial<ViewState> {
  const patch: Partial<ViewState> = {};
  for (const key of TEXTS) {
    const value = values.get(key);
    if (value !== undefined) patch[key] = value;
  }
  for (const key of ["position", "selected", "at_a", "at_b"] as const) {
    const value = Number(values.get(key) ?? NaN);
    if (Number.isInteger(value)) patch[key] = value;
  }
  for (const key of ["zoom", "yzoom", "bytes"] as const) {
    const [from, to, ...more] = (values.get(key) ?? "").split(",").map(Number);
    if (from < to && more.length === 0) patch[key] = [from, to];
  }
  for (const [key, known] of CHOICES) {
    const value = values.get(key) ?? "";
    if (known.includes(value)) Object.assign(patch, { [key]: value });
  }
  for (const key of ["grouped", "sharers", "full", "merge", "invert", "frames", "whole"] as const) {
    const value = values.get(key) ?? "";
    if (value !== "" && value !== "false") patch[key] = true;
  }
  // Links that know of no tabs, XProf's among them, mean a program.
  const ofProgram = ["module", "space", "position", "selected", "full"].some((key) => key in patch);
  if (patch.tab === undefined && ofProgram) patch.tab = "memory_viewer";
  return patch;
}

/** State of our own page's query: XProf's links put it there. */
function fromQuery(query: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const [key, value] of readParts(query, new Set([...KEYS, ...Object.keys(ALIASES)])))
    values.set(ALIASES[key] ?? key, value);
  return values;
}

/** Reads the URL into a patch for the start. */
export function readUrl(): Partial<ViewState> {
  const values = fromQuery(window.location.search);
  for (const [key, value] of readParts(hostWindow().location.hash, KNOWN)) values.set(key, value);
  return fromValues(values);
}

/** The fragment that stands for a state, for links to our own page. */
export function fragmentOf(state: ViewState): string {
  return `#${writeParts("", KNOWN, toValues(state))}`;
}

/** Changes come at the rate of the pointer; browsers refuse more than some 100 URL changes in 30 s. */
const WRITE_AFTER_MS = 300;

/** Keeps URL and state the same, both ways, from now on. */
export function bindUrl(store: Store<ViewState>): void {
  const { location, history } = hostWindow();
  const { dataset } = document.documentElement;
  let timer = 0;
  store.subscribe(() => {
    window.clearTimeout(timer);
    // For who drives the page: what is in the address now is not yet what is shown.
    dataset["address"] = "behind";
    timer = window.setTimeout(() => {
      delete dataset["address"];
      const fragment = writeParts(location.hash, KNOWN, toValues(store.get()));
      if (fragment !== location.hash.replace(/^#/, ""))
        history.replaceState(
          history.state,
          "",
          `${location.pathname}${location.search}${fragment === "" ? "" : `#${fragment}`}`,
        );
    }, WRITE_AFTER_MS);
  });
  hostWindow().addEventListener("hashchange", (event) => {
    // Not location.hash: between a link and this event the write above may have put the state from before back.
    const values = readParts(new URL(event.newURL).hash, KNOWN);
    // A fragment without any of our parts is the host's own doing, such as another tab of TensorBoard.
    if (values.size > 0) store.set({ ...initialState, theme: store.get().theme, ...fromValues(values) });
  });
}
