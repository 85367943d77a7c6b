import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import { treemap } from "../../layout/tree/treemap";
import type { Actions } from "./scene/actions";
import type { Scene } from "./scene/scene";
import { TreeCanvas } from "./canvas/tree_canvas";

const HEIGHT = 460;

interface Props {
  scene: Scene;
  actions: Actions;
  roles: boolean;
  /** Name of saved pictures, without suffix. */
  fileName: string;
  dark: boolean;
}

/** Treemap: the area of a node is its weight, children are inside their parents. */
export function TreeMap({ scene, actions, roles, fileName, dark }: Props): JSX.Element {
  const { tree, weights, top } = scene;
  const layout = useCallback(
    (width: number) => treemap(tree, weights.total, top, width, HEIGHT),
    [tree, weights, top],
  );
  return (
    <TreeCanvas
      {...{ scene, actions, layout, roles, fileName, dark }}
      height={HEIGHT}
      nested
      label="Treemap"
      testid="treemap"
    />
  );
}
