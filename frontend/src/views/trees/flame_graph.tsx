import type { JSX } from "preact";
import { useCallback, useMemo, useRef } from "preact/hooks";
import {
  flame,
  FLAME_LINE_HEIGHT,
  type Folds,
  levelsBelow,
  NO_FOLDS,
  rootFolds,
} from "../../layout/tree/flame";
import type { Actions } from "./scene/actions";
import type { Scene } from "./scene/scene";
import { TreeCanvas } from "./canvas/tree_canvas";

interface Props {
  scene: Scene;
  actions: Actions;
  bottomUp: boolean;
  /** Show the common root frames, instead of folding them into one line. */
  unfolded: boolean;
  onUnfold: () => void;
  roles: boolean;
  /** Name of saved pictures, without suffix. */
  fileName: string;
  dark: boolean;
}

/** Flame graph: the width of a node is its weight, children are below their parents. */
export function FlameGraph(props: Props): JSX.Element {
  const { scene, actions, bottomUp, unfolded, onUnfold, roles, fileName, dark } = props;
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
      {...{ scene, actions, layout, roles, fileName, dark, onUnfold }}
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
