import { encodeTables } from "../tables/fixture";
import type { Forest } from "./forest";
import { readForest } from "./forest";
import { decodeTables } from "../tables/decode";

/**
 * Build a forest for tests from one path of labels for each row, root first. A row with an empty path has no
 * node.
 */
export function fixtureForest(paths: string[][], merged: Record<string, number> = {}): Forest {
  interface Node {
    label: string;
    below: Map<string, Node>;
    rows: number[];
  }
  const made = (label: string): Node => ({ label, below: new Map(), rows: [] });
  const root = made("");
  paths.forEach((path, row) => {
    let node = root;
    for (const label of path) {
      const next = node.below.get(label) ?? made(label);
      node.below.set(label, next);
      node = next;
    }
    if (node !== root) node.rows.push(row);
  });
  const labels: string[] = [];
  const parent: number[] = [];
  const end: number[] = [];
  const leaf = paths.map(() => -1);
  const visit = (node: Node, above: number): void => {
    const number = labels.push(node.label) - 1;
    parent.push(above);
    end.push(0);
    for (const row of node.rows) leaf[row] = number;
    for (const child of node.below.values()) visit(child, number);
    end[number] = labels.length;
  };
  for (const child of root.below.values()) visit(child, -1);
  const tables = encodeTables(
    {},
    {
      tree: {
        label: { kind: "text", values: labels },
        parent: { kind: "i32", values: parent },
        end: { kind: "i32", values: end },
        merged: { kind: "i32", values: labels.map((label) => merged[label] ?? 1) },
        framework: { kind: "u8", values: labels.map((label) => Number(label.startsWith("jax"))) },
      },
      leaf: { node: { kind: "i32", values: leaf } },
    },
  );
  return readForest(decodeTables(tables));
}
