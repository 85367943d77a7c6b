import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createStore } from "../../base/store";
import type { Field } from "./fields";
import { bindUrl, fromValues, readUrl, toFragment, toValues } from "./url";
import {
  initialState,
  NEW_COMPARISON,
  NEW_RECORDING,
  SCHEMA,
  STATE_KEYS,
  type ViewState,
} from "./view_state";

/** A state with another value in every field that a URL carries, and the URL that links have had for it so far. */
const STATE: ViewState = {
  ...initialState,
  tab: "memory_profile",
  run: "train/1",
  host: "localhost",
  module: "jit_step(7)",
  space: "HBM",
  position: 120,
  selected: 0,
  zoom: [1.5, 90],
  range: [20, 41],
  timeline_zoom: [0, 1024],
  usage_zoom: [512, 2048],
  search: "layer_\\d",
  size_filter: ">1MiB",
  sort: "-size",
  tree_sort: "name",
  expanded: "name-1x2y.small",
  tree_expanded: "a.1c",
  each_host: true,
  small_memories: true,
  show_sharing: true,
  timeline_regions: "all",
  timeline_only: true,
  below: "buffers",
  paused: true,
  axis: "time",
  usage_range: "fit",
  toggled_curves: "heap",
  capacity: 16911433728,
  timeline_layout: "address",
  group: "shape",
  chart: "treemap",
  classification: "model",
  tree_weight: "time",
  merge_layers: true,
  invert_tree: true,
  root_frames: true,
  sandwich_function: "step (train.py)",
  tree_node: "params/layer_3",
  row_filter: "source:train.py:12 step",
  granularity: "line",
  focus: "attention",
  ignore: "jax",
  hide: "dot",
  framework_frames: true,
  all_devices: true,
  selected_function: "step",
  a: "train/1|a",
  b: "train/1|b",
  at_a: 3,
  at_b: 4,
  compare_by: "source",
  change_kinds: "grown,shrunk",
  selected_change: "12,34",
  fit_step: "fit_gpt.py:step batch",
  fit_choice: "v5e:2x2 remat=none",
  fit_candidate: "train/1",
  fleet_memory: "/host:CPU",
  fleet_color: "capacity",
  fleet_peaks: [1024, 2048],
  fleet_all: true,
  fleet_device: "train/1|host-2||TPU core 3",
  fleet_trend: "capture",
  fleet_series: "program:jit_step",
};
const FRAGMENT =
  "#tab=memory_profile&run=train/1&host=localhost&module=jit_step(7)&space=HBM&position=120&selected=0&zoom=1.5,90" +
  "&between=20,41&yzoom=0,1024&bytes=512,2048&search=layer_%5Cd&size=%3E1MiB&sort=-size&tree_sort=name" +
  "&opened=name-1x2y.small" +
  "&tree_opened=a.1c&each_host=true&small=true&sharers=true&show=all&full=true&below=buffers&paused=true&axis=time" +
  "&range=fit&curves=heap&capacity=16911433728&layout=address" +
  "&group=shape&chart=treemap&by=model&weight=time&merge=true&invert=true" +
  "&roots=true&around=step%20(train.py)&node=params/layer_3" +
  "&only=source:train.py:12%20step&calls=line&focus=attention&ignore=jax&hide=dot&frames=true&whole=true&picked=step" +
  "&a=train/1|a&b=train/1|b&at_a=3&at_b=4&steps=source&kinds=grown,shrunk&change=12,34" +
  "&step=fit_gpt.py:step%20batch&choice=v5e:2x2%20remat%3Dnone&candidate=train/1" +
  "&fleet_memory=/host:CPU&fleet_color=capacity&fleet_peaks=1024,2048&fleet_all=true" +
  "&fleet_device=train/1|host-2||TPU%20core%203&fleet_trend=capture&fleet_series=program:jit_step";

describe("the state in the URL", () => {
  it("is nothing at the start", () => {
    expect(toValues(initialState).size).toBe(0);
  });

  it("has the parameter names that links have had so far, in their order", () => {
    expect(`#${toFragment(STATE)}`).toBe(FRAGMENT);
  });

  it("comes back as it was", () => {
    for (const key of STATE_KEYS)
      if (SCHEMA[key].url !== null) expect(STATE[key], key).not.toEqual(initialState[key]);
    expect({ ...initialState, ...fromValues(toValues(STATE)) }).toEqual(STATE);
  });

  it("has one name per field", () => {
    const names = STATE_KEYS.flatMap((key) => {
      const { url, xprofNames = [] } = SCHEMA[key] as Field<unknown>;
      return url === null ? [] : [url.name, ...xprofNames];
    });
    expect(new Set(names).size).toBe(names.length);
  });

  it("does not carry what is under the pointer, nor the theme of whoever shares it", () => {
    expect(toValues({ ...initialState, hovered: 3, search_match: 4, theme: "dark" }).size).toBe(0);
  });

  it("ignores invalid values", () => {
    const values = new Map([
      ["position", "x"],
      ["selected", "1.5"],
      ["zoom", "9,3"],
      ["yzoom", "1,2,3"],
      ["show", "x"],
      ["tab", "trees"],
      ["axis", ""],
      ["group", "__proto__"],
      ["by", "name"],
      ["merge", "false"],
    ]);
    expect(fromValues(values)).toEqual({});
  });

  it("leads to a program where a link has no tab", () => {
    expect(fromValues(new Map([["module", "jit_step(7)"]]))).toEqual({
      module: "jit_step(7)",
      tab: "memory_viewer",
    });
    expect(fromValues(new Map([["run", "train/1"]]))).toEqual({ run: "train/1" });
  });

  it("keeps the newest expanded groups that a URL has room for", () => {
    const expanded = Array.from({ length: 200 }, (_, i) => `group${i}`).join(".");
    const written = toValues({ ...initialState, expanded }).get("opened") ?? "";
    expect(written.length).toBeLessThanOrEqual(600);
    expect(expanded.endsWith(`.${written}`)).toBe(true);
  });

  it("is read from XProf's links too, unless the fragment says otherwise", () => {
    const page = fakeWindow("#run=eval");
    page.location.search =
      "?run=train&module_name=jit_step&memory_space=1&view_memory_allocation_timeline=true&other=1";
    vi.stubGlobal("window", page);
    expect(readUrl()).toEqual({
      tab: "memory_viewer",
      run: "eval",
      module: "jit_step",
      space: "1",
      timeline_only: true,
    });
    vi.unstubAllGlobals();
  });
});

describe("a reset", () => {
  it("with another recording is of what means nothing there", () => {
    expect(NEW_RECORDING).toEqual({
      position: null,
      selected: null,
      hovered: null,
      search_match: null,
      pointed: null,
      zoom: null,
      range: null,
      timeline_zoom: null,
      usage_zoom: null,
      sandwich_function: "",
      tree_node: "",
      row_filter: "",
      selected_function: "",
      selected_change: "",
      expanded: "",
      fit_candidate: "",
      fleet_device: "",
      tree_expanded: "",
    });
  });

  it("of a comparison is of the compared recordings and positions", () => {
    expect(NEW_COMPARISON).toEqual({ a: "", b: "", at_a: null, at_b: null });
  });
});

describe("the URL and the state", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("have an entry in the browser's history for each change of place, not for zoom and search", () => {
    const { page, store } = openAt("");
    store.fill({ run: "train", host: "h", module: "jit_a", space: "HBM" });
    store.set({ tab: "memory_viewer" });
    store.set({ zoom: [1, 2] });
    store.set({ search: "x" });
    store.set({ module: "jit_b", space: "", zoom: null });
    store.fill({ space: "HBM" });
    vi.advanceTimersByTime(1000);
    const first = "#run=train&host=h&module=jit_a&space=HBM";
    expect(page.entries()).toEqual([
      first,
      `#tab=memory_viewer&${first.slice(1)}&zoom=1,2&search=x`,
      "#tab=memory_viewer&run=train&host=h&module=jit_b&space=HBM&search=x",
    ]);
  });

  it("follow Back and Forward at once, and do not return by themselves", () => {
    const { page, store } = openAt("#run=train");
    store.set({ tab: "memory_viewer", selected: 3 });
    store.set({ zoom: [1, 2] });
    store.set({ zoom: [1, 3] });
    store.set({ tab: "compare", selected: null, zoom: null });
    store.fill({ a: "x", b: "y" });
    page.history.go(-1);
    expect(store.get()).toMatchObject({ tab: "memory_viewer", selected: 3, zoom: [1, 3], a: "" });
    store.fill({ module: "jit_a" });
    vi.advanceTimersByTime(1000);
    page.history.go(-1);
    expect(store.get()).toEqual({ ...initialState, run: "train" });
    vi.advanceTimersByTime(1000);
    page.history.go(2);
    expect(store.get()).toMatchObject({ tab: "compare", a: "x", b: "y", selected: null });
    expect(page.entries()).toHaveLength(3);
  });

  it("scroll to the top of another tab, and back to where the page was", () => {
    const { page, store, moves } = openAt("#run=train");
    store.set({ zoom: [1, 2], host: "h" });
    store.fill({ tab: "fit" });
    expect(moves).toEqual([]);
    store.set({ tab: "compare" });
    page.history.go(-1);
    expect(moves).toEqual([false, true]);
  });

  it("follow Back to the page's first state, which has no parameters", () => {
    const { page, store } = openAt("");
    store.set({ tab: "compare" });
    page.history.go(-1);
    expect(store.get()).toEqual(initialState);
  });

  it("follow a link, and keep its entry when the page adds defaults", () => {
    const { page, store } = openAt("#run=train");
    store.set({ zoom: [48, 402] });
    page.follow("#run=eval");
    expect(store.get()).toEqual({ ...initialState, run: "eval" });
    vi.advanceTimersByTime(1000);
    store.fill({ host: "h" });
    expect(page.entries()).toEqual(["#run=train&zoom=48,402", "#run=eval&host=h"]);
  });

  it("keep a change that is not written yet when the host says that the URL may have changed", () => {
    const { page, store } = openAt("#run=train");
    store.set({ zoom: [1, 2] });
    store.set({ zoom: [3, 4] });
    page.announce();
    expect(store.get().zoom).toEqual([3, 4]);
    vi.advanceTimersByTime(1000);
    expect(page.entries()).toEqual(["#run=train&zoom=3,4"]);
  });

  it("write what a browser rejected once it accepts changes again", () => {
    const { page, store } = openAt("");
    page.reject = true;
    store.set({ tab: "compare" });
    vi.advanceTimersByTime(1000);
    expect(page.entries()).toEqual([""]);
    page.reject = false;
    vi.advanceTimersByTime(1000);
    expect(page.entries()).toEqual(["#tab=compare"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("leave the fragments of TensorBoard's other tabs alone", () => {
    const { page, store } = openAt("#memory&run=train");
    page.follow("#profile&run=eval");
    expect(store.get().run).toBe("train");
    store.set({ tab: "compare" });
    vi.advanceTimersByTime(1000);
    expect(page.entries()).toEqual(["#memory&run=train", "#profile&run=eval"]);
    page.history.go(-1);
    expect(store.get()).toEqual({ ...initialState, run: "train" });
  });
});

function openAt(hash: string) {
  const page = fakeWindow(hash);
  vi.stubGlobal("window", page);
  vi.stubGlobal("document", { documentElement: { dataset: {} } });
  const store = createStore({ ...initialState, ...readUrl() });
  const moves: boolean[] = [];
  bindUrl(store, initialState, { move: (_from, _to, isBack) => moves.push(isBack) });
  return { page, store, moves };
}

/** The part of a window that the URL needs, with a history of fragments. */
function fakeWindow(hash = "") {
  const listeners: (() => void)[] = [];
  const entries = [hash];
  let at = 0;
  const hashOf = (address: string): string => new URL(address, "http://here").hash;
  const notify = (): void => listeners.forEach((listener) => listener());
  const write = (change: () => void): void => {
    if (page.reject) throw new Error("too many changes");
    change();
  };
  const push = (address: string): void => void entries.splice(++at, Infinity, hashOf(address));
  const page = {
    parent: null as unknown,
    reject: false,
    location: {
      pathname: "/",
      search: "",
      get hash() {
        return entries[at];
      },
      get href() {
        return `http://here/${entries[at]}`;
      },
    },
    history: {
      state: null,
      pushState: (_state: unknown, _title: string, address: string) => write(() => push(address)),
      replaceState: (_state: unknown, _title: string, address: string) =>
        write(() => void (entries[at] = hashOf(address))),
      go: (by: number) => {
        at += by;
        notify();
      },
    },
    entries: () => entries,
    announce: notify,
    follow: (link: string) => {
      push(link);
      notify();
    },
    setTimeout: (run: () => void, after: number) => setTimeout(run, after),
    clearTimeout: (timer: number) => clearTimeout(timer),
    addEventListener: (_: string, listener: () => void) => void listeners.push(listener),
  };
  page.parent = page;
  return page;
}
