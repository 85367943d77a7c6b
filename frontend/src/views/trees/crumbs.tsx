import type { JSX } from "preact";
import { labelOf, lineage } from "../../layout/forest";
import type { Actions } from "./actions";
import type { Scene } from "./scene";

/** The way from everything to what the chart is zoomed to; each step leads back to it. */
export function Crumbs({ scene, actions }: { scene: Scene; actions: Actions }): JSX.Element {
  const { tree, weights, unit, top } = scene;
  const steps = [0, ...lineage(tree, top)];
  return (
    <nav class="crumbs" aria-label="Zoomed to" data-testid="crumbs">
      <ol>
        {steps.map((node) => (
          <li key={node}>
            {node === top ? (
              <b aria-current="location">
                {labelOf(tree, node)} <span class="muted">{unit.format(weights.total[node])}</span>
              </b>
            ) : (
              <button class="link" onClick={() => actions.zoom(node)}>
                {labelOf(tree, node)}
              </button>
            )}
          </li>
        ))}
      </ol>
      {top !== 0 && weights.count[top] > 0 && (
        <button
          data-testid="only-these"
          title="Confine all charts and the table to these ( o )"
          onClick={() => actions.only(top)}
        >
          Only these everywhere
        </button>
      )}
    </nav>
  );
}
