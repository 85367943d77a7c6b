import { useCallback, useMemo } from "preact/hooks";
import { formatShare } from "../../base/units";
import { flame, FLAME_LINE_HEIGHT, levelsBelow } from "../../layout/tree/flame";
import { type FunctionTotal, functionTotals, sandwich } from "../../layout/tree/sandwich";
import { functionOf, labelOf, searchTree, shortFrame, type Tree } from "../../layout/tree/tree";
import { weighTree } from "../../layout/tree/weights";
import { writeFilter } from "../../layout/url_values";
import type { Rows } from "../../payload/recording/rows";
import { store, useViewState } from "../state/view_state";
import { VirtualLines } from "../tables/virtual_lines";
import { Middle } from "../widgets/labels";
import type { Actions, Scene, TreeChartProps } from "./scene";
import { TreeCanvas } from "./tree_canvas";

/** Filters are part of the URL. */
const MAX_FILTER = 2000;

interface Props extends TreeChartProps {
  rows: Rows;
  live: Uint32Array;
}

/** Functions with their totals; of the chosen one, the callers above it and the callees below it. */
export function Sandwich(props: Props) {
  const { scene, rows, live } = props;
  const { tree, weights, search } = scene;
  const functions = useMemo(() => functionTotals(tree, weights), [tree, weights]);
  const chosen = useViewState((state) => state.sandwich_function);
  // A function of another tree has the same name with another line, or none.
  const label = functions.some((each) => each.label === chosen) ? chosen : largestSelf(functions);
  const listed = useMemo(
    () => (search.empty ? functions : functions.filter((each) => search.matches(each.label))),
    [functions, search],
  );
  const parts = useMemo(
    () => (label === "" ? null : sandwich(tree, label, shortFunction(label))),
    [tree, label],
  );
  const inside = useMemo(
    () => (parts === null ? live : live.filter((row) => parts.rows[row] === 1)),
    [parts, live],
  );
  const pick = (name: string): void => store.set({ sandwich_function: name });
  const shared = { ...props, rows, inside, pick };
  return (
    <div class="sandwich" data-testid="sandwich">
      <FunctionList functions={listed} label={label} scene={scene} onPick={pick} />
      {parts !== null && (
        <div class="sandwich-charts" data-testid="sandwich-charts" data-function={label}>
          <h3>Callers</h3>
          <Part {...shared} tree={parts.callers} upward />
          <Part {...shared} tree={parts.callees} upward={false} />
          <h3>Callees</h3>
        </div>
      )}
    </div>
  );
}

/** Return the function that allocated most itself: those with the largest totals are often main functions. */
function largestSelf(functions: readonly FunctionTotal[]): string {
  const self = Math.max(...functions.map((each) => each.self), 0);
  return functions.find((each) => each.self === self)?.label ?? "";
}

interface ListProps {
  functions: readonly FunctionTotal[];
  label: string;
  scene: Scene;
  onPick: (label: string) => void;
}

/** Functions by total; arrow keys go from one to the next. */
function FunctionList({ functions, label, scene: { unit, weights }, onPick }: ListProps) {
  const at = functions.findIndex((each) => each.label === label);
  const step = (by: number): void => {
    if (functions.length > 0) onPick(functions[Math.min(Math.max(at + by, 0), functions.length - 1)].label);
  };
  return (
    <div class="sandwich-list" data-testid="sandwich-list">
      <VirtualLines
        count={functions.length}
        at={at}
        empty="No function matches."
        label="Functions by total. Arrows choose one."
        onStep={step}
        head={
          <div class="table-head" role="row">
            <span role="columnheader">Function</span>
            <span role="columnheader" class="numeric">
              Total
            </span>
            <span role="columnheader" class="numeric">
              Self
            </span>
          </div>
        }
        line={(i, id) => {
          const { label: name, total, self, framework } = functions[i];
          return (
            <div
              role="row"
              id={id}
              aria-selected={i === at}
              data-testid="sandwich-line"
              class={["table-line", i === at && "selected", framework && "framework"]
                .filter(Boolean)
                .join(" ")}
              onClick={() => onPick(name)}
            >
              <span role="gridcell" title={name}>
                <Middle text={shortFunction(name)} />
              </span>
              <span role="gridcell" class="numeric" title={unit.exact(total)}>
                {unit.format(total)} <span class="muted">{formatShare(total, weights.total[0])}</span>
              </span>
              <span role="gridcell" class="numeric muted" title={unit.exact(self)}>
                {self > 0 ? unit.format(self) : ""}
              </span>
            </div>
          );
        }}
      />
    </div>
  );
}

interface PartProps extends Props {
  tree: Tree;
  /** Rows of the function. */
  inside: Uint32Array;
  upward: boolean;
  pick: (label: string) => void;
}

/** The callers, upwards, or the callees of a function. */
function Part({ tree, inside, upward, pick, ...of }: PartProps) {
  const { scene: whole, rows, roles } = of;
  const { unit, column, search } = whole;
  const row = useViewState((state) => state.selected);
  const scene = useMemo((): Scene => {
    const weights = weighTree(tree, rows, inside, column, 0);
    const found = searchTree(tree, weights.total, search, { rows, live: inside, column, rest: 0 });
    const selected = row !== null && inside.includes(row) ? tree.leaf[row] : -1;
    return { tree, weights, unit, top: 0, found, selected, column, search };
  }, [tree, rows, inside, column, unit, search, row]);
  const levels = levelsBelow(tree, scene.weights.total, 0);
  const height = levels * FLAME_LINE_HEIGHT;
  const layout = useCallback(
    (width: number) => {
      const boxes = flame(tree, scene.weights.total, 0, width);
      return upward ? boxes.map((box) => ({ ...box, y: height - box.y - box.height })) : boxes;
    },
    [tree, scene, height, upward],
  );
  const actions = useMemo((): Actions => {
    const around = (node: number): void => {
      // The root is the function itself.
      if (node > 0) pick(functionOf(labelOf(tree, node)));
    };
    const filterRows = (node: number): void => {
      const below = inside.filter((each) => tree.leaf[each] >= node && tree.leaf[each] < tree.end[node]);
      const filter = writeFilter({ kind: "rows", ranges: rangesOf(below) });
      if (filter.length <= MAX_FILTER) store.set({ row_filter: filter });
    };
    return {
      press: ({ node }, shift) => (shift ? filterRows(node) : around(node)),
      zoom: around,
      sandwich: around,
      filterRows,
      clickText: "shows its callers and callees",
      rowOf: () => -1,
    };
  }, [tree, inside]);
  return (
    <TreeCanvas
      {...{ scene, actions, layout, roles, height, upward }}
      nested={false}
      label={upward ? "Callers" : "Callees"}
      fileName={of.fileName}
      testid={upward ? "sandwich-callers" : "sandwich-callees"}
    />
  );
}

/** Return ascending row numbers as ranges. */
function rangesOf(rows: Uint32Array): [number, number][] {
  const ranges: [number, number][] = [];
  for (const row of rows.slice().sort()) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === row - 1) last[1] = row;
    else ranges.push([row, row]);
  }
  return ranges;
}

/** Return a function's name with the name of its file first. */
function shortFunction(label: string): string {
  const [, called = "", file = ""] = /^(.+) \(([^()]+)\)$/s.exec(label) ?? [];
  return file === "" ? shortFrame(label) : `${file.replace(/^.*[\\/]/s, "")} ${called}`;
}
