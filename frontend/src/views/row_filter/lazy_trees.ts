import { createContext } from "preact";
import { buildTree, type Tree } from "../../layout/tree/tree";
import { invert } from "../../layout/tree/invert";
import type { Api } from "../../payload/api";
import type { Classification } from "../../payload/generated/constants";
import type { RecordingData } from "../../payload/recording/recording";
import type { Rows } from "../../payload/recording/rows";
import type { TextColumn } from "../../payload/tables/text_column";

/** One way to see a recording as a tree. */
export interface TreeKind {
  by: Classification;
  merge: boolean;
  invert: boolean;
}

export function treeKey({ by, merge, invert: bottomUp }: TreeKind): string {
  return [by, merge && "merged", bottomUp && "bottom-up"].filter(Boolean).join(" ");
}

/**
 * The way to see a recording that says most of it: programs know their model; of what was allocated as it ran, the
 * source that asked for it comes first, where it is known.
 */
export function defaultClassification(
  { source, stack, op_name, name }: Rows,
  program: boolean,
): Classification {
  if (program) return "model";
  if ([source, stack, name].some((column) => anyMatches(column, /\.py:\d/))) return "source";
  if (anyMatches(name, /\//)) return "model";
  return anyMatches(op_name, /./) ? "function" : "stack";
}

/** Whether the text of any row is so. */
function anyMatches(column: TextColumn, so: RegExp): boolean {
  return column.codes.some((_, row) => so.test(column.at(row)));
}

/** What rows are called that a classification says nothing of. */
const MISSING_LABELS: Record<Classification, string> = {
  model: "no model path",
  source: "no source line",
  stack: "no stack",
  function: "no function",
  role: "no category",
  shape: "no shape",
  dtype: "no type",
};

/** The trees of one recording, each asked for and built once. */
export class LazyTrees {
  private readonly requests = new Map<string, Promise<Tree>>();

  constructor(
    private readonly api: Api,
    private readonly id: string,
    private readonly everything: RecordingData,
    /** What bytes are called that no row explains. */
    private readonly rest: string,
    /** Whether rows may be older than the recording, so that nothing else is known of them. */
    private readonly older: boolean,
  ) {}

  get(kind: TreeKind): Promise<Tree> {
    const key = treeKey(kind);
    const known = this.requests.get(key);
    if (known !== undefined) return known;
    const request = kind.invert ? this.get({ ...kind, invert: false }).then(invert) : this.fetch(kind);
    this.requests.set(key, request);
    // An answer that did not come may come the next time.
    request.catch(() => this.requests.delete(key));
    return request;
  }

  private async fetch({ by, merge }: TreeKind): Promise<Tree> {
    const forest = await this.api.tree({ id: this.id, by, merge }, null);
    return buildTree(forest, this.everything.rows, { none: MISSING_LABELS[by], rest: this.rest }, this.older);
  }
}

/** Null until every row has come. */
export const LazyTreesContext = createContext<LazyTrees | null>(null);
