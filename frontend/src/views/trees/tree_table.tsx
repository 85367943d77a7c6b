import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { pathOf } from "../../layout/tree/tree";
import { readExpanded, toggleExpanded } from "../../layout/url_values/expanded";
import type { TreeLine, TreeSort } from "../../layout/tree/tree_table";
import { treeCsv, treeLines } from "../../layout/tree/tree_table";
import { TableHead } from "../tables/table_head";
import { saveText } from "../browser/save_file";
import { useSorting } from "../tables/use_sorting";
import { VirtualLines } from "../tables/virtual_lines";
import type { ViewState } from "../state/view_state";
import { capitalize, useTerms } from "../data/terms";
import { type Actions, boxOfNode } from "./scene/actions";
import type { Scene } from "./scene/scene";
import { treeColumns, TreeTableLine, trackTemplate } from "./tree_line";

interface Props {
  scene: Scene;
  actions: Actions;
  roles: boolean;
  fileName: string;
  store: Store<ViewState>;
  dark: boolean;
}

const LARGEST_FIRST: TreeSort = { key: "total", descending: true };

/** Tree as a table: expanded, sorted, searched and saved. */
export function TreeTable({ scene, actions, roles, fileName, store, dark }: Props): JSX.Element {
  const { tree, weights, unit, top, found } = scene;
  const terms = useTerms();
  const columns = useMemo(() => treeColumns(terms), [terms]);
  const template = trackTemplate(columns);
  const [sort, setSort] = useSorting(store, columns, LARGEST_FIRST, "tree_sort");
  const expanded = useStore(store, (state) => state.tree_expanded);
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
            id={id}
            scene={scene}
            line={lines[i]}
            template={template}
            actions={actions}
            roles={roles}
            dark={dark}
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
