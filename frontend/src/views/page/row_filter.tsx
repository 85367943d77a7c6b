import { type ComponentChildren, createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";
import { formatCount } from "../../base/units";
import { invert } from "../../layout/tree/sandwich";
import { buildTree, findNode, labelOf, pathNodes, rowsBelow, type Tree } from "../../layout/tree/tree";
import { maskOf, readFilter, type RowFilter, type RowRange, toggleRole } from "../../layout/url_values";
import type { Api } from "../../payload/api";
import type { Summary } from "../../payload/generated/answers";
import { type Classification, ROLES } from "../../payload/generated/constants";
import type { RecordingData } from "../../payload/recording/recording";
import type { Rows } from "../../payload/recording/rows";
import { useTerms } from "../data/terms";
import { useFetched } from "../data/use_fetched";
import { store, useViewState } from "../state/view_state";
import { Role } from "../widgets/labels";

/** One tree of a recording: a classification, merged or not. */
export interface TreeKind {
  by: Classification;
  merge: boolean;
  invert: boolean;
}

export function treeKey({ by, merge, invert: bottomUp }: TreeKind): string {
  return [by, merge && "merged", bottomUp && "bottom-up"].filter(Boolean).join(" ");
}

/**
 * Return the default classification: by model path for programs; by source line for allocators that record call stacks.
 */
export function defaultClassification(
  { source, stack, op_name, name }: Rows,
  program: boolean,
): Classification {
  if (program) return "model";
  if ([source, stack, name].some((column) => column.some((text) => /\.py:\d/.test(text)))) return "source";
  if (name.some((text) => text.includes("/"))) return "model";
  return op_name.blank ? "stack" : "function";
}

/** Labels of rows without a value in a classification. */
const MISSING_LABELS: Record<Classification, string> = {
  model: "no model path",
  source: "no source line",
  stack: "no stack",
  function: "no function",
  role: "no role",
  shape: "no shape",
  dtype: "no type",
};

/** Trees of one recording, each fetched and built on first use. */
class LazyTrees {
  private readonly requests = new Map<string, Promise<Tree>>();

  constructor(
    private readonly api: Api,
    readonly id: string,
    private readonly everything: RecordingData,
    /** Label of live bytes without a row. */
    private readonly rest: string,
    /** Rows may predate the recording, with an unknown allocation site. */
    private readonly older: boolean,
  ) {}

  get(kind: TreeKind): Promise<Tree> {
    const key = treeKey(kind);
    const known = this.requests.get(key);
    if (known !== undefined) return known;
    const request = kind.invert ? this.get({ ...kind, invert: false }).then(invert) : this.fetch(kind);
    this.requests.set(key, request);
    // A failed request is tried again next time.
    request.catch(() => this.requests.delete(key));
    return request;
  }

  private async fetch({ by, merge }: TreeKind): Promise<Tree> {
    const forest = await this.api.tree({ id: this.id, by, merge }, null);
    return buildTree(forest, this.everything.rows, { none: MISSING_LABELS[by], rest: this.rest }, this.older);
  }
}

/** Null until all rows have loaded. */
export const LazyTreesContext = createContext<LazyTrees | null>(null);

/** The row filter that applies to all charts. */
export interface FilteredRows {
  /** Description of the rows; empty without a filter. */
  label: string;
  /** 1 for each row that passes; null for all rows. */
  rows: Uint8Array | null;
  /** The filter lists rows by number. */
  listsRows?: boolean;
  /** Reason why the filter has no effect. */
  error: string | null;
}

const ALL_ROWS: FilteredRows = { label: "", rows: null, error: null };

export const RowFilterContext = createContext<FilteredRows>(ALL_ROWS);

/** Read the row filter from the page's state, and resolve it once the trees have loaded. */
function useRowFilter(trees: LazyTrees | null, rows: Rows | null): FilteredRows {
  const text = useViewState((state) => state.row_filter);
  const filter = useMemo(() => readFilter(text), [text]);
  const key = filter?.kind === "node" ? treeKey(filter) : null;
  const tree = useFetched(trees === null ? null : key, () =>
    filter?.kind === "node" && trees !== null ? trees.get(filter) : Promise.reject(new Error("no tree")),
  );
  return useMemo(() => {
    if (text === "" || rows === null) return ALL_ROWS;
    if (filter === null) return { label: text, rows: null, error: "is not a valid filter" };
    if (filter.kind === "rows") return filterByRanges(filter.ranges, rows);
    if (filter.kind === "roles") return filterByRoles(filter.roles, rows);
    if (tree.error !== null) return { label: filter.path, rows: null, error: tree.error.message };
    return tree.value === null
      ? { label: filter.path, rows: null, error: null }
      : filterByNode(filter, tree.value);
  }, [text, filter, rows, tree.value, tree.error]);
}

function filterByRanges(ranges: readonly RowRange[], rows: Rows): FilteredRows {
  const mask = maskOf(ranges, rows.length);
  const count = mask.reduce((sum, chosen) => sum + chosen, 0);
  const name = count === 1 ? rows.name.at(mask.indexOf(1)) : "";
  return { label: name || `${formatCount(count)} chosen`, rows: mask, listsRows: true, error: null };
}

function filterByRoles(roles: readonly number[], rows: Rows): FilteredRows {
  const label = roles.map((role) => ROLES[role]).join(", ");
  return { label, rows: rows.role.map((role) => (roles.includes(role) ? 1 : 0)), error: null };
}

function filterByNode(filter: Extract<RowFilter, { kind: "node" }>, tree: Tree): FilteredRows {
  const node = findNode(tree, filter.path);
  if (node < 0) return { label: filter.path, rows: null, error: "is not in this recording" };
  const label = pathNodes(tree, node)
    .map((at) => labelOf(tree, at))
    .join(" › ");
  return { label, rows: rowsBelow(tree, node), error: null };
}

/** Label of the row filter that applies to all charts, with a button that clears it. */
function FilterChip() {
  const on = useViewState((state) => state.row_filter !== "");
  const { label, error } = useContext(RowFilterContext);
  if (!on) return null;
  return (
    <div class="filter-chip" role="status" data-testid="filter-chip">
      {error === null && <span class="muted">Only</span>}
      <b title={label}>
        <bdi>{label}</bdi>
      </b>
      {error !== null && <span>{error}</span>}
      <button
        class="quiet"
        data-testid="filter-clear"
        aria-label="Clear the filter"
        title="Clear the filter"
        onClick={() => store.set({ row_filter: "" })}
      >
        ×
      </button>
    </div>
  );
}

interface RoleFilterProps {
  role: number;
  /** Figures beside the name. */
  children?: ComponentChildren;
}

/** Role in a legend: a button that restricts all charts to this role, and to others that are pressed. */
export function RoleFilter({ role, children }: RoleFilterProps) {
  const filter = readFilter(useViewState((state) => state.row_filter));
  const pressed = filter?.kind === "roles" && filter.roles.includes(role);
  const others = filter?.kind === "roles" && !pressed;
  return (
    <button
      class={others ? "role-filter aside" : "role-filter"}
      aria-pressed={pressed}
      data-testid={`role-${ROLES[role].replaceAll(" ", "-")}`}
      title={pressed ? "Click to clear" : others ? "Click to show too" : "Click to show only this role"}
      onClick={() => store.set({ row_filter: toggleRole(store.get().row_filter, role) })}
    >
      <Role role={role} />
      {children}
    </button>
  );
}

interface Props {
  api: Api;
  recording: Summary;
  /** Null until all rows have loaded. */
  everything: RecordingData | null;
  children: ComponentChildren;
}

/** Provide the trees of a recording and the row filter to the components inside. */
export function TreesScope({ api, recording, everything, children }: Props) {
  const { id, axis } = recording;
  const { unexplained: rest } = useTerms();
  const trees = useMemo(
    () => (everything === null ? null : new LazyTrees(api, id, everything, rest, axis === "TIME")),
    [api, id, axis, rest, everything],
  );
  const filteredRows = useRowFilter(trees, everything?.rows ?? null);
  return (
    <LazyTreesContext.Provider value={trees}>
      <RowFilterContext.Provider value={filteredRows}>
        {children}
        <FilterChip />
      </RowFilterContext.Provider>
    </LazyTreesContext.Provider>
  );
}
