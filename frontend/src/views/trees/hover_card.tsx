import type { JSX } from "preact";
import { formatCount, formatShare } from "../../base/units";
import type { Box } from "../../layout/flame";
import { labelOf, lineage } from "../../layout/forest";
import { ROLES } from "../../payload/recording";
import { Tooltip } from "../recording/tooltip";
import { useWords } from "../words";
import type { Actions } from "./actions";
import { labelOfBox } from "./paint";
import type { Scene } from "./scene";

interface Props {
  scene: Scene;
  box: Box;
  x: number;
  y: number;
  width: number;
  actions: Actions;
}

/** What is under the pointer: its name and place, what it weighs, alone and of the rest, and what a click would do. */
export function HoverCard({ scene, box, x, y, width, actions }: Props): JSX.Element {
  const { tree, weights, unit } = scene;
  const { total, self, count, role } = weights;
  const words = useWords();
  const { node, gathered } = box;
  const above = lineage(tree, tree.parent[box.from]).map((at) => labelOf(tree, at));
  const items = (many: number): string => `${formatCount(many)} ${many === 1 ? words.item : words.items}`;
  if (gathered > 0)
    return (
      <Tooltip x={x} y={y + 18} width={width}>
        <b>{formatCount(gathered)} more, too small to draw</b>
        <span class="muted">below {labelOf(tree, node)}: a click zooms in</span>
      </Tooltip>
    );
  const parent = tree.parent[box.from];
  const leaf = actions.rowOf(node) >= 0;
  return (
    <Tooltip x={x} y={y + 18} width={width}>
      <b>{labelOfBox(scene, box)}</b>
      {above.length > 0 && <span class="muted">{above.join(" › ")}</span>}
      <span>
        <b>{unit.format(total[node])}</b>
        {`, ${formatShare(total[node], total[0])} of ${unit.format(total[0])}`}
        {parent > 0 && `, ${formatShare(total[node], total[parent])} of ${labelOf(tree, parent)}`}
      </span>
      <span>
        {count[node] > 0 && items(count[node])}
        {role[node] !== 0 && `, mostly ${ROLES[role[node]]}`}
        {self[node] > 0 && self[node] < total[node] && `, ${unit.format(self[node])} its own`}
      </span>
      {node !== scene.top && (
        <span class="muted">
          Click {leaf ? `selects this ${words.item}` : "zooms in"} · Shift + click shows only{" "}
          {leaf ? "it" : "these"} everywhere
        </span>
      )}
    </Tooltip>
  );
}
