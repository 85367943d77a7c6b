import { useEffect, useMemo } from "preact/hooks";
import { formatBytes, formatCount, formatCounted, formatExact } from "../../base/units";
import { layoutCallGraph } from "../../layout/call_graph";
import type { Api } from "../../payload/api";
import type { CallGraph } from "../../payload/generated/answers";
import type { CallgraphQuery } from "../../payload/generated/client";
import { nodeName } from "../../payload/responses/names";
import { FullWindow } from "../browser/full_window";
import { useDraft } from "../browser/hooks";
import { useLastFetched } from "../data/use_fetched";
import { store, useViewState } from "../state/view_state";
import { Choice, Toggle } from "../widgets/choice";
import { ErrorMessage } from "../widgets/message";
import { GraphPicture } from "./picture";
import { Neighbors, TopTable } from "./tables";

const GRANULARITY = [
  { value: "function", label: "Function", about: "One box per function name, whatever the file" },
  { value: "filefunction", label: "Function in file", about: "One box per function and file" },
  { value: "file", label: "File", about: "One box per file" },
  { value: "line", label: "Line", about: "One box per line" },
] as const;

const DEVICES = [
  { value: "one", label: "This device", about: "Memory of the device selected above" },
  { value: "all", label: "All devices", about: "All devices and executables of the file together" },
] as const;

const PATTERNS = [
  {
    key: "focus",
    label: "Focus",
    about: "Keep stacks with a function or file that matches this regular expression",
  },
  { key: "ignore", label: "Ignore", about: "Omit stacks with a function or file that matches" },
  { key: "hide", label: "Hide", about: "Remove matching functions from the stacks, and keep their bytes" },
] as const;

interface ToolbarProps {
  devices: number;
  /** True if the graph cannot be filtered by regular expressions, as in a report. */
  fixed: boolean;
}

/** Controls of the call graph, named after pprof's options. */
function Toolbar({ devices, fixed }: ToolbarProps) {
  const calls = useViewState((state) => state.granularity);
  const frames = useViewState((state) => state.framework_frames);
  const whole = useViewState((state) => state.all_devices);
  return (
    <div class="toolbar">
      <Choice
        label="Granularity"
        testid="granularity"
        options={GRANULARITY}
        value={calls}
        onPick={(picked) => store.set({ granularity: picked, selected_function: "" })}
      />
      {devices > 1 && (
        <Choice
          label="Devices"
          testid="devices"
          options={DEVICES}
          value={whole ? "all" : "one"}
          onPick={(picked) => store.set({ all_devices: picked === "all" })}
        />
      )}
      {!fixed && PATTERNS.map((pattern) => <Pattern key={pattern.key} pattern={pattern} />)}
      <Toggle
        label="Framework frames"
        title="Frames of JAX and other installed packages; if hidden, their bytes count for their callers"
        on={frames}
        onChange={(on) => store.set({ framework_frames: on, selected_function: "" })}
      />
    </div>
  );
}

/** Text field that takes effect on Enter or blur: half a regular expression would be a different one. */
function Pattern({ pattern }: { pattern: (typeof PATTERNS)[number] }) {
  const value = useViewState((state) => state[pattern.key]);
  const field = useDraft(value, (typed) => store.set({ [pattern.key]: typed.trim() }));
  return (
    <input
      type="search"
      class="pattern"
      data-testid={`pattern-${pattern.key}`}
      aria-label={`${pattern.label}: ${pattern.about}`}
      title={pattern.about}
      placeholder={`${pattern.label}: regex`}
      spellcheck={false}
      {...field}
    />
  );
}

interface Props {
  api: Api;
  id: string;
  /** Id of a base profile to subtract; empty for none. */
  base: string;
  /** Number of devices in the file. */
  devices: number;
  fileName: string;
  onReady: (ready: boolean) => void;
}

/** Call graph of allocations, as a picture and as pprof's top table. */
export function CallGraphSection({ api, id, base, devices, fileName, onReady }: Props) {
  const query = useQuery(id, base);
  const fixed = api.report !== null;
  const key = JSON.stringify(query);
  const { value: graph, error, waiting } = useLastFetched(key, (_, signal) => api.callgraph(query, signal));
  const selectedName = useViewState((state) => state.selected_function);
  const picture = useMemo(() => (graph === null ? null : layoutCallGraph(graph)), [graph]);
  const node = useMemo(() => (graph === null ? -1 : findNode(graph, selectedName)), [graph, selectedName]);
  useEffect(() => onReady(!waiting), [waiting]);
  const pick = (chosen: number): void =>
    store.set({
      selected_function: graph === null || chosen < 0 || chosen === node ? "" : nodeName(graph.nodes, chosen),
    });
  return (
    <section class="call-graph" aria-label="Call graph" aria-busy={waiting}>
      <header class="section-head">
        <h2>{base === "" ? "Call graph" : "Call graph of the change"}</h2>
        <span class="muted" data-testid="call-graph-summary">
          {graph !== null && summary(graph, base !== "")}
        </span>
      </header>
      <Toolbar {...{ devices, fixed }} />
      {error !== null && <ErrorMessage error={error} />}
      {graph !== null && picture !== null && error === null && (
        <>
          <FullWindow of="call graph">
            <div class={node >= 0 ? "call-graph-body with-neighbors" : "call-graph-body"}>
              <GraphPicture
                {...{ graph, picture, fileName }}
                picked={node}
                onPick={pick}
                change={base !== ""}
              />
              {node >= 0 && <Neighbors {...{ graph, node, fixed }} change={base !== ""} onPick={pick} />}
            </div>
          </FullWindow>
          <TopTable graph={graph} picked={node} onPick={pick} fileName={`${fileName}-top.csv`} />
        </>
      )}
    </section>
  );
}

function useQuery(id: string, base: string): CallgraphQuery {
  const by = useViewState((state) => state.granularity);
  const focus = useViewState((state) => state.focus);
  const ignore = useViewState((state) => state.ignore);
  const hide = useViewState((state) => state.hide);
  const fold = !useViewState((state) => state.framework_frames);
  const whole = useViewState((state) => state.all_devices);
  return { id, base, by, focus, ignore, hide, fold, whole };
}

function findNode({ nodes }: CallGraph, selectedName: string): number {
  if (selectedName === "") return -1;
  return nodes.flat.findIndex((_, node) => nodeName(nodes, node) === selectedName);
}

/** Note about the functions and bytes that the picture omits. */
function summary(graph: CallGraph, change: boolean) {
  const { total, shown, unplaced, not_drawn: left, nodes_total: count } = graph;
  const parts = [
    `${formatCount(count - left.nodes)} of ${formatCounted(count, "function")} drawn`,
    left.nodes > 0 && left.largest === 0 && "the others have no bytes",
    left.largest > 0 && `each of the others has ${formatBytes(left.largest)} or less`,
    !change && shown !== total && `${formatBytes(shown)} of ${formatBytes(total)} pass focus and ignore`,
    unplaced !== 0 && `${formatBytes(unplaced)} in stacks without remaining frames`,
    change && `shares are relative to ${formatBytes(total)} in the base profile`,
  ];
  return <span title={formatExact(total)}>{parts.filter(Boolean).join("; ")}</span>;
}
