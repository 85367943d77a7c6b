import {
  CLICK_SLACK,
  isPinch,
  type Move,
  onMoveKeys,
  onWheel,
  panOf,
  sidewaysBy,
  zoomFactor,
  zoomOf,
} from "../../base/input";
import { MIN_BYTES, MIN_POSITIONS, pan, saveSpan, type View, zoom } from "../../layout/axis";
import type { Size } from "../browser/hooks";
import { GUTTER_LEFT } from "../drawing/surface";
import { pictureSize, valueAt } from "./drawing/scene";

/** Callbacks of the gestures; points are in pixels of the picture. */
export interface GestureHost {
  /** Current view, full extent, size of the plot, and whether it fills the window. */
  current: () => { view: View; extent: View; size: Size; full: boolean };
  show: (view: View) => void;
  hover: (x: number, y: number) => void;
  /** A drag has started; nothing is hovered until it ends. */
  hold: () => void;
  leave: () => void;
  click: (x: number, y: number) => void;
  doubleClick: (x: number, y: number) => void;
  /** Click on the x axis. */
  inspect: (x: number) => void;
  /** Drag on the x axis, which selects the part between two points. */
  select: (x0: number, x1: number) => void;
  /** The zoom selection; null when it ends. */
  band: (edges: readonly [number, number, number, number] | null) => void;
}

interface Press {
  kind: "pan" | "band" | "select";
  x: number;
  y: number;
  view: View;
  moved: boolean;
}

/** Listen to pointer, wheel, and W A S D over the plot; `host` is called each time. Return a function that stops it. */
export function bindGestures(element: HTMLElement, host: () => GestureHost): () => void {
  let press: Press | null = null;
  const pointOf = (event: MouseEvent): { x: number; y: number } => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left - GUTTER_LEFT, y: event.clientY - box.top };
  };

  const onDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const { x, y } = pointOf(event);
    const { view, extent, size } = host().current();
    const onAxis = y >= pictureSize(size).height;
    // When fully zoomed out there is nothing to pan, as on the usage chart.
    const showsAll = saveSpan(view.x, extent.x) === null && saveSpan(view.y, extent.y) === null;
    const marks = event.shiftKey || showsAll;
    press = { kind: onAxis ? "select" : marks ? "band" : "pan", x, y, view, moved: false };
    element.setPointerCapture(event.pointerId);
  };
  const onMove = (event: PointerEvent): void => {
    const { x, y } = pointOf(event);
    if (press === null) {
      host().hover(x, y);
      return;
    }
    press.moved ||= Math.hypot(x - press.x, y - press.y) >= CLICK_SLACK;
    if (!press.moved) return;
    host().hold();
    if (press.kind === "select") host().band([press.x, 0, x, pictureSize(host().current().size).height]);
    else if (press.kind === "band") host().band([press.x, press.y, x, y]);
    else host().show(panView(host(), press.view, press.x - x, press.y - y));
    element.classList.toggle("panning", press.kind === "pan");
  };
  const onUp = (event: PointerEvent): void => {
    if (press === null) return;
    const { x, y } = pointOf(event);
    const { kind, moved } = press;
    if (kind === "band") {
      host().band(null);
      if (moved) host().show(bandView(host(), press, x, y));
    }
    if (kind === "select" && moved) host().select(press.x, x);
    else if (!moved && kind === "select") host().inspect(x);
    else if (!moved) host().click(x, y);
    release();
  };
  const release = (): void => {
    press = null;
    host().band(null);
    element.classList.remove("panning");
  };
  const onDoubleClick = (event: MouseEvent): void => {
    const { x, y } = pointOf(event);
    host().doubleClick(x, y);
  };

  const stop = new AbortController();
  const listeners = {
    pointerdown: onDown,
    pointermove: onMove,
    pointerup: onUp,
    pointercancel: release,
    pointerleave: () => host().leave(),
    dblclick: onDoubleClick,
  };
  for (const [name, listener] of Object.entries(listeners))
    element.addEventListener(name, listener as (event: Event) => void, stop);
  const onTurn = (event: WheelEvent): boolean => {
    const { x, y } = pointOf(event);
    const view = wheelView(host(), event, x, y);
    if (view !== null) host().show(view);
    return view !== null;
  };
  const onLetter = ({ pointer, ...key }: Move): void =>
    host().show(letterView(host(), key, pointer === null ? null : pointOf(pointer).x));
  onWheel(element, onTurn, stop.signal);
  onMoveKeys(element, onLetter, stop.signal);
  return () => stop.abort();
}

/** Return the view moved right and down by pixels of the picture. */
function panView(host: GestureHost, { x, y }: View, right: number, down: number): View {
  const { extent, size } = host.current();
  const picture = pictureSize(size);
  return {
    x: pan(x, extent.x, (right / picture.width) * (x[1] - x[0])),
    y: pan(y, extent.y, (-down / picture.height) * (y[1] - y[0])),
  };
}

function bandView(host: GestureHost, press: Press, x: number, y: number): View {
  const { view, extent, size } = host.current();
  const picture = pictureSize(size);
  const from = valueAt(view, picture, Math.min(press.x, x), Math.max(press.y, y));
  const to = valueAt(view, picture, Math.max(press.x, x), Math.min(press.y, y));
  return {
    x: zoom([from.along, to.along], extent.x, (from.along + to.along) / 2, 1, MIN_POSITIONS),
    y: zoom([from.byte, to.byte], extent.y, (from.byte + to.byte) / 2, 1, MIN_BYTES),
  };
}

/**
 * Return the view after a wheel event; null for one that scrolls the page. Ctrl, which a pinch also sends, zooms x,
 * Alt y; Shift or sideways pans. In the full window there is nothing to scroll: the wheel zooms x, with Ctrl y too.
 */
function wheelView(host: GestureHost, event: WheelEvent, x: number, y: number): View | null {
  const { view, extent, size, full } = host.current();
  const sideways = sidewaysBy(event);
  const isZoomed = saveSpan(view.x, extent.x) !== null;
  if (sideways !== 0) return isZoomed ? panView(host, view, sideways, 0) : null;
  const along = isPinch(event) || (full && !event.altKey);
  const up = event.altKey || (full && isPinch(event));
  if (!along && !up) return null;
  const factor = zoomFactor(event);
  const at = valueAt(view, pictureSize(size), x, y);
  return {
    x: along ? zoom(view.x, extent.x, at.along, factor, MIN_POSITIONS) : view.x,
    y: up ? zoom(view.y, extent.y, at.byte, factor, MIN_BYTES) : view.y,
  };
}

/** Return the view after W A S D, zoomed about the pointer at `x`, or about the middle. */
function letterView(host: GestureHost, key: Omit<Move, "pointer">, x: number | null): View {
  const { view, extent, size } = host.current();
  const { width, height } = pictureSize(size);
  const factor = zoomOf(key);
  if (factor === null) return panView(host, view, panOf(key) * width, 0);
  const inside = x !== null && x >= 0 && x < width ? x : width / 2;
  const { along } = valueAt(view, { width, height }, inside, 0);
  return { ...view, x: zoom(view.x, extent.x, along, factor, MIN_POSITIONS) };
}

/** Share of the view that an arrow key pans by. */
const STRIDE = 0.125;

/** Return the view after a key, or null for other keys. With Alt, + and - zoom the y axis. */
export function keyView(event: KeyboardEvent, view: View, extent: View): View | null {
  if (event.ctrlKey || event.metaKey) return null;
  const { x, y } = view;
  const share = event.shiftKey ? 4 * STRIDE : STRIDE;
  const across = (by: number): View => ({ x: pan(x, extent.x, by * (x[1] - x[0])), y });
  const up = (by: number): View => ({ x, y: pan(y, extent.y, by * (y[1] - y[0])) });
  const scaled = (factor: number): View =>
    event.altKey
      ? { x, y: zoom(y, extent.y, (y[0] + y[1]) / 2, factor, MIN_BYTES) }
      : { x: zoom(x, extent.x, (x[0] + x[1]) / 2, factor, MIN_POSITIONS), y };
  const views: Partial<Record<string, () => View>> = {
    ArrowLeft: () => across(-share),
    ArrowRight: () => across(share),
    ArrowUp: () => up(share),
    ArrowDown: () => up(-share),
    Home: () => across(-Infinity),
    End: () => across(Infinity),
    "+": () => scaled(0.5),
    "=": () => scaled(0.5),
    "-": () => scaled(2),
    _: () => scaled(2),
    "0": () => extent,
  };
  return views[event.key]?.() ?? null;
}
