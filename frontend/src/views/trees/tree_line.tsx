import type { JSX } from "preact";
import { formatCount, formatShare } from "../../base/units";
import { labelOf, shortFrame } from "../../layout/tree/tree";
import type { TreeLine, TreeSortKey } from "../../layout/tree/tree_table";
import { ROLES } from "../../payload/generated/constants";
import type { Column } from "../tables/data_table";
import { Swatch } from "../widgets/role";
import { capitalize, type Terms } from "../data/terms";
import type { Actions } from "./scene/actions";
import type { Scene } from "./scene/scene";

export function treeColumns(terms: Terms): Column<TreeSortKey>[] {
  return [
    {
      key: "name",
      heading: "Name",
      about: "Node, below its parent",
      numeric: false,
      track: "minmax(260px, 660px)",
    },
    {
      key: "total",
      heading: "Total",
      about: "Weight including all descendants",
      numeric: true,
      track: "210px",
    },
    {
      key: "self",
      heading: "Self",
      about: `Weight of the ${terms.items} at the node itself`,
      numeric: true,
      track: "110px",
    },
    {
      key: "count",
      heading: capitalize(terms.items),
      about: `${capitalize(terms.items)} at the node and below`,
      numeric: true,
      track: "86px",
    },
  ];
}

/** Space for the buttons of a line. */
export function trackTemplate(columns: readonly Column<TreeSortKey>[]): string {
  return [...columns.map(({ track }) => track), "minmax(96px, 1fr)"].join(" ");
}

interface Props {
  id: string;
  scene: Scene;
  line: TreeLine;
  template: string;
  actions: Actions;
  roles: boolean;
  dark: boolean;
  focused: boolean;
  onToggle: () => void;
  onFocus: () => void;
}

/** Line of a tree table. */
export function TreeTableLine({ scene, line, actions, roles, dark, ...on }: Props): JSX.Element {
  const { tree, weights, unit, found } = scene;
  const { total, self, count, role } = weights;
  const { node, level, expanded } = line;
  const label = labelOf(tree, node);
  const share = Math.min(Math.max(total[node] / total[0], 0), 1);
  const marked = found.matching?.[node] === 1;
  return (
    <div
      role="row"
      id={on.id}
      aria-level={level + 1}
      aria-expanded={expanded ?? undefined}
      aria-selected={on.focused}
      data-testid="tree-line"
      data-node={node}
      class={["table-line tree-line", on.focused && "selected", tree.framework[node] === 1 && "framework"]
        .filter(Boolean)
        .join(" ")}
      style={{ gridTemplateColumns: on.template }}
      onClick={on.onFocus}
      onDblClick={() => actions.zoom(node)}
    >
      <span
        role="gridcell"
        class="tree-name"
        style={{ paddingLeft: `${Math.min(level, 24) * 14}px` }}
        title={label}
      >
        {expanded === null ? (
          <i class="twist" />
        ) : (
          <button
            class="twist"
            tabindex={-1}
            aria-label={expanded ? "Close" : "Open"}
            data-testid="tree-twist"
            onClick={on.onToggle}
          >
            {expanded ? "▾" : "▸"}
          </button>
        )}
        {roles && (
          <span role="img" class="role" aria-label={ROLES[role[node]]} title={`mostly ${ROLES[role[node]]}`}>
            <Swatch role={role[node]} dark={dark} />
          </span>
        )}{" "}
        {marked ? <mark>{shortFrame(label)}</mark> : shortFrame(label)}
        {tree.merged[node] > 1 && <span class="muted"> ×{formatCount(tree.merged[node])}</span>}
      </span>
      <span
        role="gridcell"
        class="numeric tree-share"
        title={unit.exact(total[node])}
        style={{ "--share": `${100 * share}%` }}
      >
        {unit.format(total[node])} <span class="muted">{formatShare(total[node], total[0])}</span>
      </span>
      <span role="gridcell" class="numeric muted" title={self[node] > 0 ? unit.exact(self[node]) : ""}>
        {self[node] > 0 ? unit.format(self[node]) : ""}
      </span>
      <span role="gridcell" class="numeric">
        {formatCount(count[node])}
      </span>
      <span role="gridcell" class="tree-acts">
        <button
          class="link"
          tabindex={-1}
          title="Zoom to this node ( Enter )"
          onClick={() => actions.zoom(node)}
        >
          Zoom
        </button>
        {count[node] > 0 && node > 0 && (
          <button
            class="link"
            tabindex={-1}
            title="Filter all charts by this node ( o )"
            onClick={() => actions.filterRows(node)}
          >
            Only
          </button>
        )}
      </span>
    </div>
  );
}
