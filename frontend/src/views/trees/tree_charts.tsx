import { useCallback, useContext, useMemo, useRef } from "preact/hooks";
import {
  flame,
  FLAME_LINE_HEIGHT,
  type Folds,
  levelsBelow,
  NO_FOLDS,
  rootFolds,
} from "../../layout/tree/flame";
import type { Tree } from "../../layout/tree/tree";
import { treemap } from "../../layout/tree/treemap";
import { hasRoles } from "../../layout/usage/live_set";
import type { Program } from "../../payload/recording/recording";
import type { Rows } from "../../payload/recording/rows";
import { FullWindow, useFullWindow } from "../browser/full_window";
import { useTerms } from "../data/terms";
import { useFetched } from "../data/use_fetched";
import { defaultClassification, LazyTreesContext, treeKey, type TreeKind } from "../page/row_filter";
import { store, useViewState } from "../state/view_state";
import { ErrorMessage } from "../widgets/message";
import { Sandwich } from "./sandwich";
import { actionsOf, type Scene, type SceneParts, type TreeChartProps, useTreeScene } from "./scene";
import { TreeCanvas } from "./tree_canvas";
import { TreeTable } from "./tree_table";
import { Crumbs, TreeToolbar } from "./tree_toolbar";

export const TREE_CHARTS = [
  {
    value: "flame",
    label: "Flame graph",
    about: "Hierarchy; width shows the weight, largest first (left-heavy)",
  },
  { value: "sandwich", label: "Sandwich", about: "Callers of one function above it, callees below it" },
  { value: "treemap", label: "Treemap", about: "Hierarchy; area shows the weight" },
  { value: "tree", label: "Tree table", about: "Hierarchy with numbers" },
] as const;

interface FlameGraphProps extends TreeChartProps {
  bottomUp: boolean;
  /** Show the common root frames, instead of folding them into one line. */
  unfolded: boolean;
  onUnfold: () => void;
}

/** Flame graph: the width of a node is its weight, children are below their parents. */
function FlameGraph({ scene, actions, bottomUp, unfolded, onUnfold, roles, fileName }: FlameGraphProps) {
  const { tree, weights, top } = scene;
  const folds = useMemo(
    () => (unfolded || bottomUp || top !== 0 ? NO_FOLDS : rootFolds(tree, weights.total)),
    [tree, weights, top, unfolded, bottomUp],
  );
  const layout = useCallback(
    (width: number) => flame(tree, weights.total, top, width, folds),
    [tree, weights, top, folds],
  );
  const levels = useLevels(scene, folds, unfolded);
  return (
    <TreeCanvas
      {...{ scene, actions, layout, roles, fileName, onUnfold }}
      height={levels * FLAME_LINE_HEIGHT}
      nested={false}
      label={bottomUp ? "Flame graph, bottom-up" : "Flame graph"}
      testid="flame-graph"
    />
  );
}

/** Return the maximum number of levels so far, so that the content below does not move while stepping. */
function useLevels({ tree, weights, top }: Scene, folds: Folds, unfolded: boolean): number {
  const most = useRef({ tree, top, unfolded, levels: 0 });
  const { tree: tree_before, top: top_before, unfolded: unfolded_before } = most.current;
  if (tree_before !== tree || top_before !== top || unfolded_before !== unfolded)
    most.current = { tree, top, unfolded, levels: 0 };
  most.current.levels = Math.max(most.current.levels, levelsBelow(tree, weights.total, top, folds));
  return most.current.levels;
}

const HEIGHT = 460;
/** Height of the controls above and below it in the full window. */
const CONTROLS = 130;

/** Treemap: the area of a node is its weight, children are inside their parents. */
function TreeMap({ scene, actions, roles, fileName }: TreeChartProps) {
  const { tree, weights, top } = scene;
  const height = useFullWindow() ? Math.max(window.innerHeight - CONTROLS, HEIGHT) : HEIGHT;
  const layout = useCallback(
    (width: number) => treemap(tree, weights.total, top, width, height),
    [tree, weights, top, height],
  );
  return (
    <TreeCanvas
      {...{ scene, actions, layout, roles, fileName, height }}
      nested
      label="Treemap"
      testid="treemap"
    />
  );
}

interface Props {
  /** Null until all rows have loaded. */
  rows: Rows | null;
  program: Program | null;
  /** Rows that pass the filter. */
  live: Uint32Array;
  /** Live bytes without a row. */
  unexplained: number;
  /** True for a compiled program, false for an allocator. */
  compiled: boolean;
  fileName: string;
}

/** Trees of the live buffers: by model path, source, function, role, shape or type. */
export function TreeCharts(props: Props) {
  const { rows, program, compiled } = props;
  const terms = useTerms();
  const { tree, kind, error } = useTree(rows, compiled, true);
  if (tree !== null && rows !== null && program !== null)
    return <Charts {...props} tree={tree} kind={kind} rows={rows} program={program} />;
  return (
    <div class="tree-charts">
      <TreeToolbar by={kind.by} scene={null} lasting={program === null || program.length > 1} />
      {error !== null && <ErrorMessage error={error} />}
      {error === null && <div class="tree-placeholder muted">Reading every {terms.item}…</div>}
    </div>
  );
}

interface ShownTree {
  /** Null until it has loaded. */
  tree: Tree | null;
  kind: TreeKind;
  error: Error | null;
}

/** Return the tree that the state selects, which is loaded once it is wanted. */
export function useTree(rows: Rows | null, compiled: boolean, wanted: boolean): ShownTree {
  const trees = useContext(LazyTreesContext);
  const kind = useKind(rows, compiled);
  const { value, error } = useFetched(
    trees === null || !wanted ? null : `${trees.id} ${treeKey(kind)}`,
    () => (trees === null ? Promise.reject(new Error("no rows")) : trees.get(kind)),
  );
  return { tree: value, kind, error };
}

function useKind(rows: Rows | null, compiled: boolean): TreeKind {
  const chosen = useViewState((state) => state.classification);
  const chart = useViewState((state) => state.chart);
  // Of a program, too, callers and callees are those of its source.
  const sandwich = chart === "sandwich";
  const first = useMemo(
    () => (rows === null ? "model" : defaultClassification(rows, compiled && !sandwich)),
    [rows, compiled, sandwich],
  );
  const by = chosen === "auto" ? first : chosen;
  const merge = useViewState((state) => state.merge_layers) && by === "model";
  const invert = useViewState((state) => state.invert_tree) && !sandwich;
  return useMemo(() => ({ by, merge, invert }), [by, merge, invert]);
}

interface ChartsProps extends SceneParts {
  kind: TreeKind;
  fileName: string;
}

function Charts({ tree, kind, rows, program, live, unexplained, fileName }: ChartsProps) {
  const chart = useViewState((state) => state.chart);
  const unfolded = useViewState((state) => state.root_frames);
  const scene = useTreeScene({ tree, rows, program, live, unexplained });
  const actions = useMemo(() => actionsOf(scene, kind, live), [scene, kind, live]);
  const roles = useMemo(() => hasRoles(rows), [rows]);
  const named = `${fileName}-by-${treeKey(kind).replaceAll(" ", "-")}`;
  const shared = { scene, actions, roles, fileName: named };
  const label = TREE_CHARTS.find(({ value }) => value === chart)?.label ?? TREE_CHARTS[0].label;
  return (
    <FullWindow of={label.toLowerCase()}>
      <div class="tree-charts">
        <TreeToolbar by={kind.by} scene={scene} lasting={program.length > 1} />
        {chart !== "sandwich" && <Crumbs scene={scene} actions={actions} />}
        {chart === "sandwich" ? (
          <Sandwich {...shared} rows={rows} live={live} />
        ) : chart === "treemap" ? (
          <TreeMap {...shared} />
        ) : chart === "tree" ? (
          <TreeTable {...shared} />
        ) : (
          <FlameGraph
            {...shared}
            bottomUp={kind.invert}
            unfolded={unfolded}
            onUnfold={() => store.set({ root_frames: true })}
          />
        )}
      </div>
    </FullWindow>
  );
}
