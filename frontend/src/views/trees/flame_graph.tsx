import type { JSX } from "preact";
import { useCallback, useRef } from "preact/hooks";
import { flame, FLAME_LINE_HEIGHT, levelsBelow } from "../../layout/tree/flame";
import type { Actions } from "./scene/actions";
import type { Scene } from "./scene/scene";
import { TreeCanvas } from "./canvas/tree_canvas";

interface Props {
  scene: Scene;
  actions: Actions;
  bottomUp: boolean;
  roles: boolean;
  /** Name of saved pictures, without suffix. */
  fileName: string;
  dark: boolean;
}

/** Flame graph: the width of a node is its weight, children are below their parents. */
export function FlameGraph({ scene, actions, bottomUp, roles, fileName, dark }: Props): JSX.Element {
  const { tree, weights, top } = scene;
  const layout = useCallback((width: number) => flame(tree, weights.total, top, width), [tree, weights, top]);
  const levels = useLevels(scene);
  return (
    <TreeCanvas
      {...{ scene, actions, layout, roles, fileName, dark }}
      height={levels * FLAME_LINE_HEIGHT}
      nested={false}
      label={bottomUp ? "Flame graph, bottom-up" : "Flame graph"}
      testid="flame-graph"
    />
  );
}

/** Return the maximum number of levels so far, so that the content below does not move while stepping. */
function useLevels({ tree, weights, top }: Scene): number {
  const most = useRef({ tree, top, levels: 0 });
  if (most.current.tree !== tree || most.current.top !== top) most.current = { tree, top, levels: 0 };
  most.current.levels = Math.max(most.current.levels, levelsBelow(tree, weights.total, top));
  return most.current.levels;
}
