import { describe, expect, it } from "vitest";
import type { CallGraph } from "../payload/generated/answers";
import { boxLines, curvePath, formatPercent, layoutCallGraph } from "./call_graph";

const MB = 2 ** 20;

/** func2 calls func1 and op; func1 also calls op; `small` is hidden. */
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

  it("places a box for each visible function, without overlap and inside the picture", () => {
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

  it("places callers above callees, with arrows from caller to callee", () => {
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

  it("uses larger fonts for larger flat bytes and wider arrows for larger calls", () => {
    expect(box(3)?.font).toBeGreaterThan(box(0)?.font ?? Infinity);
    expect(box(1)?.font).toBe(11);
    const widths = new Map(arrows.map(({ call, width: wide }) => [call, wide]));
    expect(widths.get(0)).toBeGreaterThan(widths.get(1) ?? Infinity);
  });

  it("draws decreases as large as increases", () => {
    const gone = graph();
    gone.nodes.flat = gone.nodes.flat.map((bytes) => -bytes);
    gone.calls.bytes = gone.calls.bytes.map((bytes) => -bytes);
    expect(layoutCallGraph(gone).boxes.map(({ font }) => font)).toEqual(boxes.map(({ font }) => font));
  });

  it("draws recursion between two functions", () => {
    const loop = graph();
    loop.calls.caller.push(3);
    loop.calls.callee.push(1);
    loop.calls.bytes.push(MB);
    loop.calls.allocations.push(1);
    loop.calls.residual.push(false);
    expect(layoutCallGraph(loop).arrows).toHaveLength(5);
  });

  it("is empty without visible functions", () => {
    const nothing = graph();
    nothing.nodes.drawn = nothing.nodes.drawn.map(() => false);
    expect(layoutCallGraph(nothing)).toMatchObject({ boxes: [], arrows: [] });
  });
});

describe("boxLines", () => {
  it("contains flat and cumulative figures", () => {
    expect(boxLines(graph(), 0)).toEqual(["main", "4.00 MiB (4.762%)", "of 84.0 MiB (100%)"]);
    expect(boxLines(graph(), 1)).toEqual(["func2", "0 of", "80.0 MiB (95.24%)"]);
    expect(boxLines(graph(), 3)).toEqual(["op", "80.0 MiB (95.24%)"]);
  });

  it("formats shares in as many digits as pprof does", () => {
    expect(formatPercent(1, 3)).toBe("33.33%");
    expect(formatPercent(-44, 101)).toBe("\u221243.56%");
    expect(formatPercent(1, 10_000)).toBe("0.010%");
    expect(formatPercent(5, 0)).toBe("new");
    expect(formatPercent(0, 0)).toBe("0%");
  });
});

describe("curvePath", () => {
  it("starts and ends at the first and last point", () => {
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
