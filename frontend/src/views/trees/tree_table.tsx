import { useMemo, useState } from "preact/hooks";
import { formatCount, formatShare } from "../../base/units";
import { labelOf, pathOf, shortFrame } from "../../layout/tree/tree";
import {
  treeCsv,
  type TreeLine,
  treeLines,
  type TreeSort,
  type TreeSortKey,
} from "../../layout/tree/tree_table";
import { readExpanded, toggleExpanded } from "../../layout/url_values";
import { ROLES } from "../../payload/generated/constants";
import { saveText } from "../browser/export";
import { capitalize, type Terms, useTerms } from "../data/terms";
import { store, useViewState } from "../state/view_state";
import type { Heading } from "../tables/columns";
import { useSorting } from "../tables/data_table";
import { TableHead, VirtualLines } from "../tables/virtual_lines";
import { Swatch } from "../widgets/labels";
import { type Actions, boxOfNode, type Scene, type TreeChartProps } from "./scene";

function treeColumns(terms: Terms): Heading<TreeSortKey>[] {
  const column = (key: TreeSortKey, heading: string, about: string, track: string) => {
    return { key, heading, about, track, numeric: key !== "name" };
  };
  const items = capitalize(terms.items);
  return [
    column("name", "Name", "Node, below its parent", "minmax(260px, 660px)"),
    column("total", "Total", "Weight including all descendants", "210px"),
    column("self", "Self", `Weight of the ${terms.items} at the node itself`, "110px"),
    column("count", items, `${items} at the node and below`, "86px"),
  ];
}

interface TreeLineProps extends Omit<TreeChartProps, "fileName"> {
  id: string;
  line: TreeLine;
  template: string;
  focused: boolean;
  onToggle: () => void;
  onFocus: () => void;
}

/** Line of a tree table. */
function TreeTableLine({ scene, line, actions, roles, ...on }: TreeLineProps) {
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
            <Swatch role={role[node]} />
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

const LARGEST_FIRST: TreeSort = { key: "total", descending: true };

/** Tree as a table: expanded, sorted, searched and saved. */
export function TreeTable({ scene, actions, roles, fileName }: TreeChartProps) {
  const { tree, weights, unit, top, found } = scene;
  const terms = useTerms();
  const columns = useMemo(() => treeColumns(terms), [terms]);
  // The last track has the buttons of a line.
  const template = [...columns.map(({ track }) => track), "minmax(96px, 1fr)"].join(" ");
  const [sort, setSort] = useSorting(columns, LARGEST_FIRST, "tree_sort");
  const expanded = useViewState((state) => state.tree_expanded);
  // Nodes are identified by number: paths can be long.
  const toggled = useMemo(
    () => new Set(Array.from(readExpanded(expanded), (mark) => parseInt(mark, 36))),
    [expanded],
  );
  const [focus, setFocus] = useState<number | null>(null);
  const lines = useMemo(
    () => treeLines(tree, weights, top, sort, toggled, found.matching),
    [tree, weights, top, sort, toggled, found],
  );
  const at = lines.findIndex(({ node }) => node === (focus ?? scene.selected));
  const toggle = (node: number): void =>
    store.set({ tree_expanded: toggleExpanded(expanded, node.toString(36)) });
  const step = (by: number): void => {
    if (lines.length > 0) setFocus(lines[Math.min(Math.max(at + by, 0), lines.length - 1)].node);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = keysOf(at < 0 ? null : lines[at], scene, actions, toggle, setFocus);
    const act = acts[event.key];
    if (act === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  return (
    <div class="tree-table" data-testid="tree-table" onKeyDown={onKeyDown}>
      <VirtualLines
        role="treegrid"
        count={weights.total[top] === 0 ? 0 : lines.length}
        at={at}
        empty={`Nothing is ${terms.live} here.`}
        label={`${capitalize(terms.items)} as a tree`}
        onStep={step}
        head={<TableHead columns={columns} template={template} sort={sort} onSort={setSort} />}
        line={(i, id) => (
          <TreeTableLine
            {...{ id, scene, template, actions, roles }}
            line={lines[i]}
            focused={i === at}
            onToggle={() => toggle(lines[i].node)}
            onFocus={() => setFocus(lines[i].node)}
          />
        )}
      />
      <footer class="tree-foot">
        <button
          onClick={() =>
            saveText(treeCsv(tree, weights, top, unit.column), `${fileName}${suffix(scene)}.csv`)
          }
        >
          Save tree as CSV
        </button>
      </footer>
    </div>
  );
}

/** Handle keys other than up and down, which the list handles, as in the other trees. */
function keysOf(
  line: TreeLine | null,
  { tree, top }: Scene,
  actions: Actions,
  toggle: (node: number) => void,
  focus: (node: number) => void,
): Partial<Record<string, () => void>> {
  const out = (): void => actions.zoom(Math.max(tree.parent[top], 0));
  const leave = top === 0 ? {} : { Escape: out };
  if (line === null) return leave;
  const { node, expanded } = line;
  return {
    ...leave,
    ArrowRight: () => {
      if (expanded === false) toggle(node);
    },
    ArrowLeft: () => {
      if (expanded === true) toggle(node);
      else if (node !== top) focus(tree.parent[node]);
    },
    Enter: () => actions.press(boxOfNode(node), false),
    o: () => actions.filterRows(node),
    c: () => actions.sandwich(node),
  };
}

/** Return a file name suffix for a part of the tree. */
function suffix({ tree, top }: Scene): string {
  return top === 0
    ? ""
    : `-${pathOf(tree, top)
        .replaceAll(/[^\w.-]+/g, "_")
        .slice(-60)}`;
}
