import type { JSX } from "preact";
import { labelOf, pathNodes, shortLabel } from "../../layout/tree/tree";
import type { Actions } from "./scene/actions";
import type { Scene } from "./scene/scene";

/** Number of breadcrumbs shown, from the current node upwards. */
const MAX_CRUMBS = 4;

/** Breadcrumbs from the root to the zoomed node; each is a link. */
export function Crumbs({ scene, actions }: { scene: Scene; actions: Actions }): JSX.Element {
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
