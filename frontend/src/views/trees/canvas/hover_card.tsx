import type { JSX } from "preact";
import { formatCount, formatCounted, formatShare } from "../../../base/units";
import type { TreeBox } from "../../../layout/tree/flame";
import { labelOf, pathNodes, shortFrame, shortLabel } from "../../../layout/tree/tree";
import { ROLES } from "../../../payload/generated/constants";
import { Tooltip } from "../../widgets/tooltip";
import { useTerms } from "../../data/terms";
import type { Actions } from "../scene/actions";
import { labelOfBox } from "./paint";
import type { Scene } from "../scene/scene";

const MAX_ANCESTORS = 4;

interface Props {
  scene: Scene;
  box: TreeBox;
  x: number;
  y: number;
  width: number;
  actions: Actions;
}

/** Tooltip of a node: name, path, weight, shares, and the effect of a click. */
export function HoverCard({ scene, box, x, y, width, actions }: Props): JSX.Element {
  const { tree, weights, top } = scene;
  const { node, gathered, own, from } = box;
  const terms = useTerms();
  const below = own || gathered > 0;
  const above = nearest(pathNodes(tree, below ? node : tree.parent[from]).map((at) => shortLabel(tree, at)));
  const leaf = actions.rowOf(box) >= 0;
  const label = labelOf(tree, node);
  // The full path of a frame's file.
  const full = gathered === 0 && !own && shortFrame(label) !== label ? label : "";
  return (
    <Tooltip x={x} y={y + 18} width={width}>
      <b>{gathered > 0 ? `${formatCount(gathered)} more, too small to draw` : labelOfBox(scene, box)}</b>
      {full !== "" && <code>{full}</code>}
      {above.length > 0 && <span class="muted">{above.join(" › ")}</span>}
      {gathered === 0 && (
        <Weight
          scene={scene}
          weight={(own ? weights.self : weights.total)[node]}
          of={below ? node : tree.parent[from]}
        />
      )}
      {!below && <About scene={scene} node={node} />}
      {(node !== top || below) && (
        <span class="muted">
          Click{" "}
          {box.folded > 0
            ? "shows each of them"
            : (actions.clickText ?? (leaf ? `selects this ${terms.item}` : "zooms in"))}{" "}
          · Shift + click shows only {leaf ? "it" : "these"} everywhere
        </span>
      )}
    </Tooltip>
  );
}

/** Return the end of a long path; the breadcrumbs show all of it after zooming. */
function nearest(labels: string[]): string[] {
  return labels.length > MAX_ANCESTORS ? ["…", ...labels.slice(-MAX_ANCESTORS)] : labels;
}

/** A weight, with its share of the total and of its parent. */
function Weight({ scene, weight, of }: { scene: Scene; weight: number; of: number }): JSX.Element {
  const { tree, weights, unit } = scene;
  const all = weights.total[0];
  return (
    <span>
      <b>{unit.format(weight)}</b>
      {`, ${formatShare(weight, all)} of ${unit.format(all)}`}
      {of > 0 && `, ${formatShare(weight, weights.total[of])} of ${shortLabel(tree, of)}`}
    </span>
  );
}

function About({ scene: { weights, unit }, node }: { scene: Scene; node: number }): JSX.Element {
  const terms = useTerms();
  const { total, self, count, role } = weights;
  const said = [
    count[node] > 0 && formatCounted(count[node], terms.item, terms.items),
    role[node] !== 0 && `${count[node] === 1 ? "" : "mostly "}${ROLES[role[node]]}`,
    self[node] > 0 && self[node] < total[node] && `${unit.format(self[node])} itself`,
  ];
  return <span>{said.filter(Boolean).join(", ")}</span>;
}
