import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import { flame, FLAME_LINE, levelsBelow } from "../../layout/flame";
import type { Actions } from "./actions";
import type { Scene } from "./scene";
import { TreeCanvas } from "./tree_canvas";

/** Lines in sight; deeper trees scroll. */
const MOST_LINES = 32;

interface Props {
  scene: Scene;
  actions: Actions;
  bottomUp: boolean;
  roles: boolean;
  dark: boolean;
}

/** Each node as wide as it weighs, below the one that it is a part of. */
export function FlameGraph({ scene, actions, bottomUp, roles, dark }: Props): JSX.Element {
  const { tree, weights, top } = scene;
  const layout = useCallback((width: number) => flame(tree, weights.total, top, width), [tree, weights, top]);
  const levels = levelsBelow(tree, top);
  return (
    <TreeCanvas
      {...{ scene, actions, layout, roles, dark }}
      height={levels * FLAME_LINE}
      inSight={Math.min(levels, MOST_LINES) * FLAME_LINE}
      nested={false}
      label={bottomUp ? "Flame graph, bottom-up" : "Flame graph"}
      testid="flame-graph"
    />
  );
}
