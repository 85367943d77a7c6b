import { useMemo } from "preact/hooks";
import { formatCount } from "../../base/units";
import { rootFolds } from "../../layout/tree/flame";
import { labelOf, pathNodes, shortLabel } from "../../layout/tree/tree";
import type { Classification } from "../../payload/generated/constants";
import { useTerms } from "../data/terms";
import { store, useViewState, type ViewState } from "../state/view_state";
import { Choice, Toggle } from "../widgets/choice";
import type { Actions, Scene } from "./scene";

/** The label for functions depends on the kind of recording. */
const BY_LABELS: readonly (readonly [Classification, string])[] = [
  ["model", "model path"],
  ["source", "source lines"],
  ["stack", "stack, all frames"],
  ["function", ""],
  ["role", "role"],
  ["shape", "shape"],
  ["dtype", "type"],
];

interface Props {
  by: Classification;
  /** Null until the tree has loaded. */
  scene: Scene | null;
  /** True if buffers have lifetimes. */
  lasting: boolean;
}

/** Controls of a tree: classification, weight, merging, direction and search. */
export function TreeToolbar({ by, scene, lasting }: Props) {
  const terms = useTerms();
  const weight = useViewState((state) => state.tree_weight);
  const merge = useViewState((state) => state.merge_layers);
  const invert = useViewState((state) => state.invert_tree);
  const search = useViewState((state) => state.search);
  const chart = useViewState((state) => state.chart);
  const unfolded = useViewState((state) => state.root_frames);
  const foldable = useMemo(
    () => scene !== null && !invert && rootFolds(scene.tree, scene.weights.total).size > 0,
    [scene, invert],
  );
  // The path and the expanded nodes belong to the previous tree.
  const pick = (patch: Partial<ViewState>): void => store.set({ ...patch, tree_node: "", tree_expanded: "" });
  return (
    <div class="toolbar tree-toolbar">
      <label class="toggle">
        by
        <select
          data-testid="tree-by"
          value={by}
          onChange={(event) => pick({ classification: event.currentTarget.value as Classification })}
        >
          {BY_LABELS.map(([value, label]) => (
            <option key={value} value={value}>
              {label || terms.function_label}
            </option>
          ))}
        </select>
      </label>
      {lasting && (
        <Choice
          label="Weight"
          testid="tree-weight"
          value={weight}
          options={[
            { value: "bytes", label: "Bytes", about: `Bytes of each ${terms.item}` },
            {
              value: "time",
              label: "Bytes × lifetime",
              about:
                `Bytes times lifetime of each ${terms.item}: ` +
                "small long-lived ones weigh as much as large short-lived ones",
            },
          ]}
          onPick={(value) => store.set({ tree_weight: value })}
        />
      )}
      {by === "model" && (
        <Toggle
          label="Merge layers"
          title="Merge repeated layers: layer_0 to layer_47 become layer_*"
          on={merge}
          onChange={(on) => pick({ merge_layers: on })}
        />
      )}
      {chart !== "sandwich" && (
        <Toggle
          label="Bottom-up"
          title="Callee to caller"
          on={invert}
          onChange={(on) => pick({ invert_tree: on })}
        />
      )}
      {chart === "flame" && foldable && (
        <Toggle
          label="Root frames"
          title="Show the frames that all stacks begin with, instead of one line for them"
          on={unfolded}
          onChange={(on) => store.set({ root_frames: on })}
        />
      )}
      <input
        type="search"
        data-testid="tree-search"
        aria-label="Highlight nodes by text or regular expression"
        placeholder="Highlight: text or regex"
        spellcheck={false}
        value={search}
        onInput={(event) => store.set({ search: event.currentTarget.value, search_match: null })}
      />
      {scene?.found.matching != null && (
        <span class="muted" role="status" data-testid="tree-found">
          {scene.unit.format(scene.found.weight)} in {formatCount(scene.found.nodes)}{" "}
          {scene.found.nodes === 1 ? "node matches" : "nodes match"}
        </span>
      )}
    </div>
  );
}

/** Number of breadcrumbs shown, from the current node upwards. */
const MAX_CRUMBS = 4;

/** Breadcrumbs from the root to the zoomed node; each is a link. */
export function Crumbs({ scene, actions }: { scene: Scene; actions: Actions }) {
  const { tree, weights, unit, top } = scene;
  const way = pathNodes(tree, top);
  const left = way.slice(0, Math.max(way.length - MAX_CRUMBS, 0));
  const steps = [0, ...way.slice(left.length)];
  return (
    <nav class="crumbs" aria-label="Zoomed to" data-testid="crumbs">
      <ol>
        {steps.map((node, i) => (
          <li key={node}>
            {i === 1 && left.length > 0 && (
              <span class="crumbs-left" title={left.map((step) => labelOf(tree, step)).join(" › ")}>
                … ›
              </span>
            )}
            {node === top ? (
              <b aria-current="location" title={labelOf(tree, node)}>
                <span>{shortLabel(tree, node)}</span>{" "}
                <span class="muted">{unit.format(weights.total[node])}</span>
              </b>
            ) : (
              <button class="link" title={labelOf(tree, node)} onClick={() => actions.zoom(node)}>
                {shortLabel(tree, node)}
              </button>
            )}
          </li>
        ))}
      </ol>
      {top !== 0 && (
        <button
          title="Show its callers above it and its callees below it ( c )"
          onClick={() => actions.sandwich(top)}
        >
          Callers and callees
        </button>
      )}
      {top !== 0 && weights.count[top] > 0 && (
        <button
          data-testid="only-these"
          title="Filter all charts and the table by this node ( o )"
          onClick={() => actions.filterRows(top)}
        >
          Filter by this
        </button>
      )}
    </nav>
  );
}
