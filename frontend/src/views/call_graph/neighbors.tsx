import { formatBytes, formatCount, formatExact } from "../../base/units";
import { formatPercent } from "../../layout/call_graph";
import type { CallGraph } from "../../payload/generated/answers";
import { nodeName } from "../../payload/responses/names";
import { store } from "../state/view_state";
import { ButtonGroup } from "../widgets/choice";

interface Props {
  graph: CallGraph;
  node: number;
  change: boolean;
  /** True if the graph cannot be filtered by regular expressions, as in a report. */
  fixed: boolean;
  onPick: (node: number) => void;
}

/** Selected function: figures, callers, callees, and buttons that filter the graph by it. */
export function Neighbors({ graph, node, change, fixed, onPick }: Props) {
  const { nodes, calls, total } = graph;
  const name = nodeName(nodes, node);
  const pattern = `^${escapePattern(nodes.function[node] || nodes.file[node])}$`;
  const around = (from: readonly number[], to: readonly number[]): [number, number][] =>
    from
      .flatMap((end, call): [number, number][] => (end === node ? [[to[call], calls.bytes[call]]] : []))
      .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const list = (heading: string, found: [number, number][]) => (
    <>
      <h3>{heading}</h3>
      {found.length === 0 && <p class="muted">None in the picture.</p>}
      <ul>
        {found.map(([other, bytes]) => (
          <li key={other}>
            <button class="link" onClick={() => onPick(other)}>
              {nodeName(nodes, other)}
            </button>
            <span title={formatExact(bytes)}>{formatBytes(bytes)}</span>
          </li>
        ))}
      </ul>
    </>
  );
  return (
    <aside class="neighbors" data-testid="function-details" aria-label={`The function ${name}`}>
      <header>
        <h2>{name}</h2>
        <button class="quiet" aria-label="Close" onClick={() => onPick(-1)}>
          ×
        </button>
      </header>
      <dl>
        <dt>{change ? "Own change" : "Own bytes"}</dt>
        <dd title={formatExact(nodes.flat[node])}>
          {formatBytes(nodes.flat[node])} ({formatPercent(nodes.flat[node], total)})
        </dd>
        <dt>With what it calls</dt>
        <dd title={formatExact(nodes.cum[node])}>
          {formatBytes(nodes.cum[node])} ({formatPercent(nodes.cum[node], total)})
        </dd>
        <dt>Allocations</dt>
        <dd>{formatCount(nodes.cum_allocations[node])}</dd>
      </dl>
      {nodes.function[node] !== "" && !fixed && (
        <ButtonGroup label="Filter the graph">
          <button onClick={() => store.set({ focus: pattern })}>Focus</button>
          <button onClick={() => store.set({ ignore: pattern, selected_function: "" })}>Ignore</button>
          <button onClick={() => store.set({ hide: pattern, selected_function: "" })}>Hide</button>
        </ButtonGroup>
      )}
      {list("Called by", around(calls.callee, calls.caller))}
      {list("Calls", around(calls.caller, calls.callee))}
    </aside>
  );
}

/** Return a regular expression that matches only this name. */
function escapePattern(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
