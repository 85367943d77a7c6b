import { createContext } from "preact";
import { invert } from "../../layout/tree/sandwich";
import { buildTree, type Tree } from "../../layout/tree/tree";
import type { Api } from "../../payload/api";
import type { Classification } from "../../payload/generated/constants";
import type { RecordingData } from "../../payload/recording/recording";
import type { Rows } from "../../payload/recording/rows";

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
export class LazyTrees {
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
