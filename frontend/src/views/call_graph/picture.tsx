import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import {
  isPinch,
  type Move,
  onMoveKeys,
  onPress,
  onWheel,
  panOf,
  sidewaysBy,
  zoomFactor,
  zoomOf,
} from "../../base/input";
import { formatExact } from "../../base/units";
import { type CallGraphLayout as Layout, curvePath, type FunctionBox } from "../../layout/call_graph";
import type { CallGraph } from "../../payload/generated/answers";
import { nodeName } from "../../payload/responses/names";
import { useFullWindow } from "../browser/full_window";
import { useWidth } from "../browser/hooks";
import { copySvg } from "../drawing/picture";
import { SavePicture } from "../drawing/save_picture";
import { ButtonGroup } from "../widgets/choice";

export interface GraphProps {
  graph: CallGraph;
  picture: Layout;
  /** Index of the selected node; -1 for none. */
  picked: number;
  onPick: (node: number) => void;
  /** True if figures are differences. */
  change: boolean;
  fileName: string;
}

const MAX_HEIGHT = 620;
/** Height of what is around it in the full window. */
const AROUND = 60;
const MIN_SCALE = 0.15;
const MAX_SCALE = 3;
const ZOOM = 1.25;

/** Minimum scale at which boxes are readable; larger pictures scroll instead. */
const MIN_READABLE_SCALE = 0.6;

/**
 * Boxes and arrows. Scaled to fit if readable. Dragging, A and D pan, buttons, Ctrl + wheel, W and S zoom, and the
 * wheel scrolls the page.
 */
export function GraphPicture({ graph, picture, picked, onPick, change, fileName }: GraphProps) {
  const frame = useRef<HTMLDivElement>(null);
  const drawing = useRef<SVGSVGElement>(null);
  const width = useWidth(frame);
  const [zoom, setZoom] = useState<number | null>(null);
  const maxHeight = useFullWindow() ? window.innerHeight - AROUND : MAX_HEIGHT;
  const whole = Math.min(width / Math.max(picture.width, 1), maxHeight / Math.max(picture.height, 1));
  const fit = width === 0 ? 1 : Math.min(1, Math.max(whole, MIN_SCALE));
  const scale = zoom ?? Math.max(fit, Math.min(MIN_READABLE_SCALE, 1));
  useEffect(() => setZoom(null), [picture]);
  // The selected function, or else the first one, is scrolled into view.
  const shown = picture.boxes.find(({ node }) => node === picked) ?? picture.boxes.at(0);
  useEffect(() => {
    if (frame.current !== null) scrollIntoView(frame.current, shown, scale);
  }, [shown?.node, picture, width]);
  /** Point of the frame that keeps its place in the picture at the next zoom. */
  const anchor = useRef<{ x: number; y: number; scale: number } | null>(null);
  const zoomBy = (factor: number, event: MouseEvent | null = null): void => {
    const box = frame.current?.getBoundingClientRect();
    if (box !== undefined) {
      const x = event === null ? box.width / 2 : event.clientX - box.left;
      anchor.current = { x, y: event === null ? box.height / 2 : event.clientY - box.top, scale };
    }
    setZoom(Math.min(Math.max(scale * factor, MIN_SCALE), MAX_SCALE));
  };
  useLayoutEffect(() => {
    const [held, node] = [anchor.current, frame.current];
    anchor.current = null;
    if (held === null || node === null) return;
    node.scrollLeft = ((node.scrollLeft + held.x) * scale) / held.scale - held.x;
    node.scrollTop = ((node.scrollTop + held.y) * scale) / held.scale - held.y;
  }, [scale]);
  const moves = useRef({ zoomBy });
  moves.current = { zoomBy };
  const isEmpty = picture.boxes.length === 0;
  useEffect(() => (frame.current === null ? undefined : bindMoves(frame.current, moves)), [isEmpty]);
  const near = new Set(neighbors(graph, picked));
  if (isEmpty)
    return <div class="call-graph-frame muted">No stack is left: clear focus, ignore and hide.</div>;
  return (
    <div class="call-graph-place">
      <div class="call-graph-zoom">
        <ButtonGroup label="Zoom">
          <button aria-label="Zoom out" onClick={() => zoomBy(1 / ZOOM)}>
            −
          </button>
          <button aria-label="Zoom in" onClick={() => zoomBy(ZOOM)}>
            +
          </button>
          <button aria-pressed={scale === fit} onClick={() => setZoom(fit)}>
            Fit
          </button>
        </ButtonGroup>
        <SavePicture
          of="call graph"
          fileName={`${fileName}-calls`}
          draw={() => (drawing.current === null ? null : copySvg(drawing.current))}
        />
      </div>
      <div
        ref={frame}
        class="call-graph-frame"
        data-testid="call-graph"
        style={{ maxHeight: `${maxHeight}px` }}
        onPointerDown={(event) => startDrag(event, event.currentTarget)}
      >
        <svg
          ref={drawing}
          width={picture.width * scale}
          height={picture.height * scale}
          viewBox={`0 0 ${picture.width} ${picture.height}`}
          role="group"
          aria-label="Call graph"
        >
          <defs>
            <marker
              id="arrow"
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="8"
              markerHeight="8"
              markerUnits="userSpaceOnUse"
              orient="auto"
            >
              <path d="M0,0 L8,4 L0,8 z" />
            </marker>
          </defs>
          {picture.arrows.map((arrow) => {
            const { caller, callee, bytes, residual } = graph.calls;
            const beside = picked >= 0 && (caller[arrow.call] === picked || callee[arrow.call] === picked);
            const names = [caller, callee].map((end) => nodeName(graph.nodes, end[arrow.call])).join(" → ");
            return (
              <g
                key={arrow.call}
                class={`call ${changeClass(bytes[arrow.call], change)} ${beside ? "beside" : ""}`}
              >
                <title>
                  {`${names}: ${formatExact(bytes[arrow.call])}`}
                  {residual[arrow.call] ? ", in part through functions that are not drawn" : ""}
                </title>
                <path
                  d={curvePath(arrow.points)}
                  stroke-width={arrow.width}
                  stroke-dasharray={residual[arrow.call] ? "5 4" : undefined}
                  marker-end="url(#arrow)"
                />
                <text
                  x={arrow.labelAt[0]}
                  y={arrow.labelAt[1]}
                  text-anchor="middle"
                  dominant-baseline="middle"
                >
                  {arrow.label}
                </text>
              </g>
            );
          })}
          {picture.boxes.map((box) => (
            <BoxShape
              {...{ box, graph, change, onPick }}
              key={box.node}
              state={box.node === picked ? "picked" : picked >= 0 && !near.has(box.node) ? "aside" : ""}
            />
          ))}
        </svg>
      </div>
    </div>
  );
}

/** Listen to the wheel and W A S D over the picture. Return a function that stops listening. */
function bindMoves(
  frame: HTMLElement,
  moves: { current: { zoomBy: (factor: number, event: MouseEvent | null) => void } },
): () => void {
  const stop = new AbortController();
  const turn = (event: WheelEvent): boolean => {
    const sideways = sidewaysBy(event);
    if (sideways === 0 && !isPinch(event)) return false;
    if (sideways === 0) moves.current.zoomBy(1 / zoomFactor(event), event);
    const before = frame.scrollLeft;
    frame.scrollLeft += sideways;
    return sideways === 0 || frame.scrollLeft !== before;
  };
  const step = (key: Move): void => {
    const factor = zoomOf(key);
    if (factor === null) frame.scrollLeft += panOf(key) * frame.clientWidth;
    else moves.current.zoomBy(1 / factor, key.pointer);
  };
  onWheel(frame, turn, stop.signal);
  onMoveKeys(frame, step, stop.signal);
  return () => stop.abort();
}

function scrollIntoView(frame: HTMLElement, box: FunctionBox | undefined, scale: number): void {
  if (box === undefined) return;
  const [left, top] = [box.x * scale, box.y * scale];
  const [right, bottom] = [left + box.width * scale, top + box.height * scale];
  if (left < frame.scrollLeft || right > frame.scrollLeft + frame.clientWidth)
    frame.scrollLeft = (left + right - frame.clientWidth) / 2;
  if (top < frame.scrollTop || bottom > frame.scrollTop + frame.clientHeight)
    frame.scrollTop = (top + bottom - frame.clientHeight) / 2;
}

/** Pan by dragging the background. */
function startDrag(event: PointerEvent, frame: HTMLElement): void {
  if (event.button !== 0 || (event.target as Element).closest(".box") !== null) return;
  const from = { x: event.clientX + frame.scrollLeft, y: event.clientY + frame.scrollTop };
  const stop = new AbortController();
  const move = (moved: PointerEvent): void => {
    frame.scrollLeft = from.x - moved.clientX;
    frame.scrollTop = from.y - moved.clientY;
  };
  frame.setPointerCapture(event.pointerId);
  frame.addEventListener("pointermove", move, stop);
  for (const name of ["pointerup", "pointercancel"]) frame.addEventListener(name, () => stop.abort(), stop);
}

interface BoxProps extends Pick<GraphProps, "graph" | "change" | "onPick"> {
  box: FunctionBox;
  state: "picked" | "aside" | "";
}

function BoxShape({ box, graph, state, change, onPick }: BoxProps) {
  const { flat, cum } = graph.nodes;
  const name = nodeName(graph.nodes, box.node);
  // Colored by cumulative share, as in pprof; the box has the figure too.
  const heat = Math.min(Math.abs(cum[box.node]) / Math.max(Math.abs(graph.total), 1), 1);
  return (
    <g
      class={`box ${state} ${changeClass(cum[box.node], change)}`}
      role="button"
      tabindex={0}
      aria-pressed={state === "picked"}
      data-testid="call-graph-box"
      style={{ "--heat": `${Math.round(4 + 30 * Math.sqrt(heat))}%` }}
      onClick={() => onPick(box.node)}
      onKeyDown={onPress(() => onPick(box.node))}
    >
      <title>{`${name}: ${formatExact(flat[box.node])} flat, ${formatExact(cum[box.node])} cumulative`}</title>
      <rect x={box.x} y={box.y} width={box.width} height={box.height} rx="4" />
      {box.lines.map((line, i) => (
        <text
          key={i}
          x={box.x + box.width / 2}
          y={box.y + box.height / 2 + (i - (box.lines.length - 1) / 2) * box.font * 1.3}
          font-size={box.font}
          class={i === 0 ? "name" : ""}
          text-anchor="middle"
          dominant-baseline="central"
        >
          {line}
        </text>
      ))}
    </g>
  );
}

function changeClass(bytes: number, change: boolean): string {
  return !change || bytes === 0 ? "" : bytes > 0 ? "grown" : "shrunk";
}

/** Return a function with its callers and callees. */
function neighbors({ calls }: CallGraph, node: number): number[] {
  const found = [node];
  calls.caller.forEach((caller, call) => {
    if (caller === node) found.push(calls.callee[call]);
    if (calls.callee[call] === node) found.push(caller);
  });
  return found;
}
