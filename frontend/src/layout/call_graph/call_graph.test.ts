import { describe, expect, it } from "vitest";
import type { CallGraph } from "../../payload/generated/answers";
import { curvePath, layoutCallGraph, boxLines, formatPercent } from "./call_graph";

const MB = 2 ** 20;

/** func2 calls func1 and op; func1 calls op too; `small` is not in the picture. */
function graph(): CallGraph {
  return {
    by: "function",
    total: 84 * MB,
    total_allocations: 3,
    shown: 84 * MB,
    unplaced: 0,
    nodes: {
      function: ["main", "func2", "func1", "op", "small"],
      file: ["", "", "", "", ""],
      line: [0, 0, 0, 0, 0],
      flat: [4 * MB, 0, 0, 80 * MB, 0],
      cum: [84 * MB, 80 * MB, 40 * MB, 80 * MB, 1],
      flat_allocations: [1, 0, 0, 2, 0],
      cum_allocations: [3, 2, 1, 2, 1],
      drawn: [true, true, true, true, false],
    },
    nodes_total: 5,
    not_drawn: { nodes: 1, largest: 1 },
    not_listed: { nodes: 0, largest: 0 },
    calls: {
      caller: [0, 1, 1, 2],
      callee: [1, 2, 3, 3],
      bytes: [80 * MB, 40 * MB, 40 * MB, 40 * MB],
      allocations: [2, 1, 1, 1],
      residual: [false, false, false, true],
    },
  };
}

describe("layoutCallGraph", () => {
  const { boxes, arrows, width, height } = layoutCallGraph(graph());
  const box = (node: number) => boxes.find((found) => found.node === node);

  it("has a box for each function of the picture, none upon another, all inside", () => {
    expect(boxes.map(({ node }) => node).sort()).toEqual([0, 1, 2, 3]);
    for (const a of boxes) {
      expect(a.x).toBeGreaterThanOrEqual(0);
      expect(a.y).toBeGreaterThanOrEqual(0);
      expect(a.x + a.width).toBeLessThanOrEqual(width);
      expect(a.y + a.height).toBeLessThanOrEqual(height);
      for (const b of boxes.filter((other) => other.node > a.node)) {
        const apart =
          a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        expect(apart).toBe(true);
      }
    }
  });

  it("puts callers above what they call, and leads arrows from the one to the other", () => {
    expect(arrows).toHaveLength(4);
    const { caller, callee } = graph().calls;
    for (const { call, points } of arrows) {
      const [from, to] = [box(caller[call]), box(callee[call])];
      if (from === undefined || to === undefined) throw new Error("an arrow without its boxes");
      expect(from.y + from.height).toBeLessThan(to.y);
      const [first, last] = [points[0], points[points.length - 1]];
      expect(first[1]).toBeCloseTo(from.y + from.height, 0);
      expect(last[1]).toBeCloseTo(to.y, 0);
    }
  });

  it("writes larger what holds more of its own, and draws wider what is called for more", () => {
    expect(box(3)?.font).toBeGreaterThan(box(0)?.font ?? Infinity);
    expect(box(1)?.font).toBe(11);
    const widths = new Map(arrows.map(({ call, width: wide }) => [call, wide]));
    expect(widths.get(0)).toBeGreaterThan(widths.get(1) ?? Infinity);
  });

  it("is as large for what went as for what came", () => {
    const gone = graph();
    gone.nodes.flat = gone.nodes.flat.map((bytes) => -bytes);
    gone.calls.bytes = gone.calls.bytes.map((bytes) => -bytes);
    expect(layoutCallGraph(gone).boxes.map(({ font }) => font)).toEqual(boxes.map(({ font }) => font));
  });

  it("draws a recursion between two functions", () => {
    const loop = graph();
    loop.calls.caller.push(3);
    loop.calls.callee.push(1);
    loop.calls.bytes.push(MB);
    loop.calls.allocations.push(1);
    loop.calls.residual.push(false);
    expect(layoutCallGraph(loop).arrows).toHaveLength(5);
  });

  it("is empty where nothing is drawn", () => {
    const nothing = graph();
    nothing.nodes.drawn = nothing.nodes.drawn.map(() => false);
    expect(layoutCallGraph(nothing)).toMatchObject({ boxes: [], arrows: [] });
  });
});

describe("the text of a box", () => {
  it("has the figures of its own and with callees", () => {
    expect(boxLines(graph(), 0)).toEqual(["main", "4.00 MiB (4.762%)", "of 84.0 MiB (100%)"]);
    expect(boxLines(graph(), 1)).toEqual(["func2", "0 of", "80.0 MiB (95.24%)"]);
    expect(boxLines(graph(), 3)).toEqual(["op", "80.0 MiB (95.24%)"]);
  });

  it("gives shares as pprof does", () => {
    expect(formatPercent(1, 3)).toBe("33.33%");
    expect(formatPercent(-44, 101)).toBe("-43.56%");
    expect(formatPercent(1, 10_000)).toBe("0.010%");
    expect(formatPercent(5, 0)).toBe("new");
    expect(formatPercent(0, 0)).toBe("0%");
  });
});

describe("curve", () => {
  it("begins and ends where its points do", () => {
    expect(
      curvePath([
        [0, 0],
        [0, 10],
        [5, 20],
      ]),
    ).toMatch(/^M0\.0,0\.0 .* L5\.0,20\.0$/);
    expect(curvePath([[1, 2]])).toBe("");
  });
});
