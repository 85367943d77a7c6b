import { afterEach, describe, expect, it, vi } from "vitest";
import { createStore } from "../../base/store";
import { initialState } from "./view_state";
import { bindUrl, fromValues, toValues } from "./url";

describe("the state in the URL", () => {
  it("is nothing at the start", () => {
    expect(toValues(initialState).size).toBe(0);
  });

  it("comes back as it was", () => {
    const state = {
      ...initialState,
      run: "train/1",
      module: "jit_step(7)",
      position: 120,
      selected: 0,
      zoom: [1.5, 90] as const,
      search: "layer_\\d",
      size: ">1MiB",
      sort: "-size",
      tree_sort: "name",
      opened: "name-1x2y.small",
      tree_opened: "a.1c",
      grouped: true,
      sharers: true,
      show: "all" as const,
      full: true,
      tab: "memory_profile" as const,
      axis: "time" as const,
      range: "fit" as const,
      layout: "address" as const,
      group: "shape" as const,
      chart: "treemap" as const,
      by: "model" as const,
      weight: "time" as const,
      merge: true,
      invert: true,
      node: "params/layer_3",
      only: "source:train.py:12 step",
    };
    expect({ ...initialState, ...fromValues(toValues(state)) }).toEqual(state);
  });

  it("does not carry what is under the pointer, nor the taste of who shares it", () => {
    expect(toValues({ ...initialState, hovered: 3, match: 4, theme: "dark" }).size).toBe(0);
  });

  it("drops what does not read as it should", () => {
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

  it("takes a link that knows of no tabs for one to a program", () => {
    expect(fromValues(new Map([["module", "jit_step(7)"]]))).toEqual({
      module: "jit_step(7)",
      tab: "memory_viewer",
    });
    expect(fromValues(new Map([["run", "train/1"]]))).toEqual({ run: "train/1" });
  });
});

describe("the URL and the state", () => {
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("follow a link, though a change is written between the link and the event that tells of it", () => {
    vi.useFakeTimers();
    const page = fakeWindow();
    vi.stubGlobal("window", page);
    vi.stubGlobal("document", { documentElement: { dataset: {} } });
    const store = createStore({ ...initialState });
    bindUrl(store);
    store.set({ zoom: [48, 402] });
    page.location.hash = "#run=train";
    vi.advanceTimersByTime(1000);
    expect(page.location.hash).toContain("zoom=48,402");
    page.tell(new URL("http://here/#run=train").href);
    expect(store.get()).toEqual({ ...initialState, run: "train" });
    vi.advanceTimersByTime(1000);
    expect(page.location.hash).toBe("#run=train");
  });
});

/** As much of a window as the URL needs. */
function fakeWindow() {
  let listener: ((event: { newURL: string }) => void) | undefined;
  const page = {
    parent: null as unknown,
    location: { hash: "", pathname: "/", search: "" },
    history: {
      state: null,
      replaceState: (_state: unknown, _title: string, address: string) => {
        page.location.hash = new URL(address, "http://here").hash;
      },
    },
    setTimeout: (run: () => void, after: number) => setTimeout(run, after),
    clearTimeout: (timer: number) => clearTimeout(timer),
    addEventListener: (_: string, told: typeof listener) => {
      listener = told;
    },
    tell: (newURL: string) => listener?.({ newURL }),
  };
  page.parent = page;
  return page;
}
