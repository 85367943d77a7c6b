import dagre from "@dagrejs/dagre";
import { formatBytes } from "../base/units";
import type { CallGraph } from "../payload/generated/answers";
import type { PixelBox } from "./axis";

/** A function in the call graph. Its font grows with its flat bytes, as in pprof. */
export interface FunctionBox extends PixelBox {
  node: number;
  lines: readonly string[];
  /** Font size in pixels. */
  font: number;
}

/** A call; its width grows with its bytes. */
interface CallArrow {
  call: number;
  points: readonly (readonly [number, number])[];
  width: number;
  label: string;
  labelAt: readonly [number, number];
}

export interface CallGraphLayout {
  width: number;
  height: number;
  boxes: FunctionBox[];
  arrows: CallArrow[];
}

const MARGIN = 12;
const PADDING = 8;
const MIN_FONT = 11;
const FONT_GROWTH = 9;
const LINE_HEIGHT = 1.3;
/**
 * Width of a character in the page's sans-serif font, relative to the font size. A wide estimate is better
 * than a narrow one.
 */
const LETTER_WIDTH = 0.57;
const MAX_LINE_LENGTH = 44;
const MAX_ARROW_WIDTH = 7;

/**
 * Lay out a call graph with callers above callees. Sizes use absolute bytes, so that decreases appear as
 * large as increases.
 */
export function layoutCallGraph(graph: CallGraph): CallGraphLayout {
  const whole = Math.max(Math.abs(graph.total), 1);
  const shares = (bytes: number): number => Math.min(Math.abs(bytes) / whole, 1);
  const layered = new dagre.graphlib.Graph({ multigraph: true });
  layered.setGraph({ rankdir: "TB", nodesep: 26, ranksep: 44, marginx: MARGIN, marginy: MARGIN });
  layered.setDefaultEdgeLabel(() => ({}));
  const boxes = new Map<number, FunctionBox>();
  graph.nodes.drawn.forEach((drawn, node) => {
    if (!drawn) return;
    const font = MIN_FONT + FONT_GROWTH * Math.sqrt(shares(graph.nodes.flat[node]));
    const lines = boxLines(graph, node);
    const longest = Math.max(...lines.map((line) => line.length));
    const size = {
      width: Math.ceil(longest * font * LETTER_WIDTH) + 2 * PADDING,
      height: Math.ceil(lines.length * font * LINE_HEIGHT) + 2 * PADDING,
    };
    boxes.set(node, { node, x: 0, y: 0, ...size, lines, font });
    layered.setNode(String(node), { ...size });
  });
  const { caller, callee, bytes } = graph.calls;
  caller.forEach((from, call) => {
    if (!boxes.has(from) || !boxes.has(callee[call])) return;
    const label = formatBytes(bytes[call]);
    layered.setEdge(
      String(from),
      String(callee[call]),
      { width: Math.ceil(label.length * MIN_FONT * LETTER_WIDTH), height: 14, labelpos: "c", weight: 1 },
      String(call),
    );
  });
  dagre.layout(layered);
  for (const box of boxes.values()) {
    const { x = 0, y = 0 } = layered.node(String(box.node)) as { x?: number; y?: number };
    box.x = x - box.width / 2;
    box.y = y - box.height / 2;
  }
  const arrows = layered.edges().map((edge): CallArrow => {
    const call = Number(edge.name);
    const placed = layered.edge(edge) as { points: { x: number; y: number }[]; x: number; y: number };
    return {
      call,
      points: placed.points.map(({ x, y }) => [x, y] as const),
      width: 1 + (MAX_ARROW_WIDTH - 1) * shares(bytes[call]),
      label: formatBytes(bytes[call]),
      labelAt: [placed.x, placed.y],
    };
  });
  const { width = 0, height = 0 } = layered.graph() as { width?: number; height?: number };
  return { width, height, boxes: [...boxes.values()], arrows };
}

/** Return the lines of a box: name, location, and flat and cumulative figures. */
export function boxLines({ nodes, total }: CallGraph, node: number): string[] {
  const { function: name, file, line, flat, cum } = nodes;
  const place = line[node] > 0 ? `${file[node]}:${line[node]}` : file[node];
  const names = [name[node], place].filter((text) => text !== "").map(shortenStart);
  const own = flat[node] === 0 ? "0 of" : formatWithShare(flat[node], total);
  const figures =
    flat[node] === cum[node]
      ? [own]
      : [own, `${flat[node] === 0 ? "" : "of "}${formatWithShare(cum[node], total)}`];
  return [...(names.length > 0 ? names : ["unnamed"]), ...figures];
}

function formatWithShare(bytes: number, total: number): string {
  return `${formatBytes(bytes)} (${formatPercent(bytes, total)})`;
}

/** Format a share with as many digits as pprof: "47.62%". In a comparison, it is a share of the base profile. */
export function formatPercent(bytes: number, total: number): string {
  if (total === 0) return bytes === 0 ? "0%" : "new";
  const part = (100 * bytes) / Math.abs(total);
  const size = Math.abs(part);
  const digits = size >= 99.995 || size === 0 ? size.toFixed(0) : size.toPrecision(size < 1 ? 2 : 4);
  return `${part < 0 ? "\u2212" : ""}${digits}%`;
}

/** The end of a long name identifies it better than its start. */
function shortenStart(text: string): string {
  return text.length <= MAX_LINE_LENGTH ? text : `…${text.slice(1 - MAX_LINE_LENGTH)}`;
}

/** Return the SVG path of a smooth curve through points. */
export function curvePath(points: CallArrow["points"]): string {
  if (points.length < 2) return "";
  const [first, ...rest] = points;
  let path = `M${first[0].toFixed(1)},${first[1].toFixed(1)}`;
  rest.forEach((point, i) => {
    const before = points[i];
    if (i === rest.length - 1) path += ` L${point[0].toFixed(1)},${point[1].toFixed(1)}`;
    else {
      const next = rest[i + 1];
      const middle = [(point[0] + next[0]) / 2, (point[1] + next[1]) / 2];
      if (i === 0)
        path += ` L${((before[0] + point[0]) / 2).toFixed(1)},${((before[1] + point[1]) / 2).toFixed(1)}`;
      path += ` Q${point[0].toFixed(1)},${point[1].toFixed(1)} ${middle[0].toFixed(1)},${middle[1].toFixed(1)}`;
    }
  });
  return path;
}
