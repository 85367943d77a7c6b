import type { JSX } from "preact";
import { useContext, useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Tree } from "../../layout/tree/tree";
import { hasRoles } from "../../layout/usage/live_set";
import type { Program } from "../../payload/recording/program";
import type { Rows } from "../../payload/recording/rows";
import { useFetched } from "../data/use_fetched";
import { ErrorMessage } from "../widgets/message";
import type { ViewState } from "../state/view_state";
import { useTerms } from "../data/terms";
import { actionsOf } from "./scene/actions";
import { Crumbs } from "./crumbs";
import { FlameGraph } from "./flame_graph";
import { Sandwich } from "./sandwich";
import { useTreeScene } from "./scene/scene";
import { TreeMap } from "./tree_map";
import { TreeTable } from "./tree_table";
import { TreeToolbar } from "./tree_toolbar";
import { defaultClassification, treeKey, type TreeKind, LazyTreesContext } from "../row_filter/lazy_trees";

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
  store: Store<ViewState>;
  dark: boolean;
}

/** Trees of the live buffers: by model path, source, function, role, shape or type. */
export function TreeCharts(props: Props): JSX.Element {
  const { rows, program, compiled, store } = props;
  const { tree, kind, error } = useTree(store, rows, compiled, true);
  if (tree !== null && rows !== null && program !== null)
    return <Charts {...props} tree={tree} kind={kind} rows={rows} program={program} />;
  return (
    <div class="tree-charts">
      <TreeToolbar by={kind.by} scene={null} lasting={program === null || program.length > 1} store={store} />
      {error === null ? <Waiting /> : <ErrorMessage error={error} />}
    </div>
  );
}

interface ShownTree {
  /** Null until it has loaded. */
  tree: Tree | null;
  kind: TreeKind;
  error: Error | null;
}

/** Return the tree that the state selects; without one if it is not wanted. */
export function useTree(
  store: Store<ViewState>,
  rows: Rows | null,
  compiled: boolean,
  wanted: boolean,
): ShownTree {
  const trees = useContext(LazyTreesContext);
  const kind = useKind(store, rows, compiled);
  const { value, error } = useFetched(
    trees === null || !wanted ? null : `${trees.id} ${treeKey(kind)}`,
    () => (trees === null ? Promise.reject(new Error("no rows")) : trees.get(kind)),
  );
  return { tree: value, kind, error };
}

function useKind(store: Store<ViewState>, rows: Rows | null, compiled: boolean): TreeKind {
  const chosen = useStore(store, (state) => state.classification);
  const chart = useStore(store, (state) => state.chart);
  // Of a program, too, callers and callees are those of its source.
  const sandwich = chart === "sandwich";
  const first = useMemo(
    () => (rows === null ? "model" : defaultClassification(rows, compiled && !sandwich)),
    [rows, compiled, sandwich],
  );
  const by = chosen === "auto" ? first : chosen;
  const merge = useStore(store, (state) => state.merge_layers) && by === "model";
  const invert = useStore(store, (state) => state.invert_tree) && !sandwich;
  return useMemo(() => ({ by, merge, invert }), [by, merge, invert]);
}

function Waiting(): JSX.Element {
  const terms = useTerms();
  return <div class="tree-placeholder muted">Reading every {terms.item}…</div>;
}

interface ChartsProps extends Props {
  tree: Tree;
  kind: TreeKind;
  rows: Rows;
  program: Program;
}

function Charts({
  tree,
  kind,
  rows,
  program,
  live,
  unexplained,
  fileName,
  store,
  dark,
}: ChartsProps): JSX.Element {
  const chart = useStore(store, (state) => state.chart);
  const unfolded = useStore(store, (state) => state.root_frames);
  const scene = useTreeScene({ tree, rows, program, live, unexplained, store });
  const actions = useMemo(() => actionsOf(scene, kind, live, store), [scene, kind, live, store]);
  const roles = useMemo(() => hasRoles(rows), [rows]);
  const named = `${fileName}-by-${treeKey(kind).replaceAll(" ", "-")}`;
  const shared = { scene, actions, roles, dark, fileName: named };
  return (
    <div class="tree-charts">
      <TreeToolbar by={kind.by} scene={scene} lasting={program.length > 1} store={store} />
      {chart !== "sandwich" && <Crumbs scene={scene} actions={actions} />}
      {chart === "sandwich" ? (
        <Sandwich {...shared} rows={rows} live={live} store={store} />
      ) : chart === "treemap" ? (
        <TreeMap {...shared} />
      ) : chart === "tree" ? (
        <TreeTable {...shared} store={store} />
      ) : (
        <FlameGraph
          {...shared}
          bottomUp={kind.invert}
          unfolded={unfolded}
          onUnfold={() => store.set({ root_frames: true })}
        />
      )}
    </div>
  );
}
