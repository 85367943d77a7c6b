import type uPlot from "uplot";
import {
  CLICK_SLACK,
  isPinch,
  type Move,
  onMoveKeys,
  onWheel,
  panOf,
  PEAK_SNAP,
  sidewaysBy,
  zoomFactor,
  zoomOf,
} from "../../base/input";
import {
  type Axis,
  MIN_BYTES,
  MIN_POSITIONS,
  pan,
  restoreSpan,
  saveSpan,
  type Span,
  zoom,
} from "../../layout/axis";
import { store } from "../state/view_state";

/** Dragging pans, as on the timeline; with Shift, or when fully zoomed out, it selects a range. */
export function startsBrush(event: MouseEvent): boolean {
  const { zoom, usage_zoom: bytes } = store.get();
  return event.shiftKey || (zoom === null && bytes === null);
}

/** What a chart shows, which changes while a job runs. */
interface Shown {
  axis: Axis;
  /** Range of the y axis without zoom, in bytes. */
  limit: Span;
  length: number;
  peak: number;
}

/** Listen to wheel, W A S D, drag, click and double click over the plot. Return a function that stops listening. */
export function bindPointer(chart: uPlot, shown: () => Shown): () => void {
  const area = chart.over;
  const extent = (): Span => shown().axis.extent;
  const limit = (): Span => shown().limit;
  const window = (): Span => shown().axis.fromSaved(store.get().zoom);
  const bytes = (): Span => restoreSpan(store.get().usage_zoom, limit());
  const show = (span: Span): void => store.set({ zoom: shown().axis.toSaved(span) });
  const showBytes = (span: Span): void => store.set({ usage_zoom: saveSpan(span, limit()) });
  const marked = (): number => shown().axis.mark(store.get().position ?? shown().peak);
  let pressed: { x: number; y: number; window: Span; bytes: Span; pans: boolean } | null = null;
  let inspectedBefore = store.get().position;

  const onMouseDown = (event: MouseEvent): void => {
    if (event.detail === 1) inspectedBefore = store.get().position;
    if (event.button !== 0) return;
    const [x, y] = [event.clientX, event.clientY];
    pressed = { x, y, window: window(), bytes: bytes(), pans: !startsBrush(event) };
  };
  const onMouseMove = (event: MouseEvent): void => {
    if (pressed?.pans !== true) return;
    const [from, to] = pressed.window;
    show(pan(pressed.window, extent(), ((pressed.x - event.clientX) / area.clientWidth) * (to - from)));
    const [low, high] = pressed.bytes;
    showBytes(pan(pressed.bytes, limit(), ((event.clientY - pressed.y) / area.clientHeight) * (high - low)));
  };
  const onMouseUp = (event: MouseEvent): void => {
    const clicked = pressed !== null && Math.abs(event.clientX - pressed.x) < CLICK_SLACK;
    pressed = null;
    if (!clicked || event.target !== area) return;
    const x = event.clientX - area.getBoundingClientRect().left;
    const { axis, length, peak } = shown();
    const nearPeak = Math.abs(chart.valToPos(axis.mark(peak), "x") - x) <= PEAK_SNAP;
    const position = Math.min(Math.max(Math.floor(axis.positionAt(chart.posToVal(x, "x"))), 0), length - 1);
    store.set({ position: nearPeak || position === peak ? null : position });
  };
  // The clicks of a double click must not move the inspected position.
  const onDoubleClick = (): void => store.set({ zoom: null, usage_zoom: null, position: inspectedBefore });
  // Ctrl, which a pinch also sends, zooms x, Alt y; Shift or sideways pans. The wheel alone scrolls the page.
  const onTurn = (event: WheelEvent): boolean => {
    const [from, to] = window();
    const sideways = sidewaysBy(event);
    const along = isPinch(event);
    if (sideways !== 0 ? store.get().zoom === null : !along && !event.altKey) return false;
    if (sideways !== 0) show(pan([from, to], extent(), (sideways / area.clientWidth) * (to - from)));
    const { left, top } = area.getBoundingClientRect();
    const factor = zoomFactor(event);
    if (along)
      show(zoom([from, to], extent(), chart.posToVal(event.clientX - left, "x"), factor, MIN_POSITIONS));
    if (event.altKey)
      showBytes(zoom(bytes(), limit(), chart.posToVal(event.clientY - top, "y"), factor, MIN_BYTES));
    return true;
  };
  const onLetter = (key: Move): void => {
    const [from, to] = window();
    const factor = zoomOf(key);
    if (factor === null) {
      show(pan([from, to], extent(), panOf(key) * (to - from)));
      return;
    }
    const { left, width } = area.getBoundingClientRect();
    const x = key.pointer === null ? -1 : key.pointer.clientX - left;
    const anchor = x >= 0 && x < width ? chart.posToVal(x, "x") : marked();
    show(zoom([from, to], extent(), anchor, factor, MIN_POSITIONS));
  };

  const stop = new AbortController();
  area.addEventListener("mousedown", onMouseDown, stop);
  area.addEventListener("dblclick", onDoubleClick, stop);
  document.addEventListener("mousemove", onMouseMove, stop);
  document.addEventListener("mouseup", onMouseUp, stop);
  onWheel(area, onTurn, stop.signal);
  onMoveKeys(area.closest<HTMLElement>("[tabindex]") ?? area, onLetter, stop.signal);
  return () => stop.abort();
}

/** Handle keys of the focused chart. */
export function onKey(event: KeyboardEvent, { axis, limit, length, peak }: Shown): void {
  const { extent } = axis;
  if (event.ctrlKey || event.metaKey) return;
  const window = axis.fromSaved(store.get().zoom);
  const position = store.get().position ?? peak;
  const show = (span: Span): void => store.set({ zoom: axis.toSaved(span) });
  const inspect = (to: number): void => {
    const next = Math.min(Math.max(to, 0), length - 1);
    store.set({ position: next === peak ? null : next });
    // Keep the mark visible.
    const value = axis.at(next);
    if (value < window[0] || value >= window[1])
      show(pan(window, extent, value - (window[0] + window[1]) / 2));
  };
  const scale = (factor: number): void => {
    if (event.altKey) {
      const bytes = restoreSpan(store.get().usage_zoom, limit);
      const span = zoom(bytes, limit, (bytes[0] + bytes[1]) / 2, factor, MIN_BYTES);
      store.set({ usage_zoom: saveSpan(span, limit) });
    } else show(zoom(window, extent, axis.mark(position), factor, MIN_POSITIONS));
  };
  const stride = event.shiftKey
    ? Math.max(Math.round((axis.positionAt(window[1]) - axis.positionAt(window[0])) / 20), 1)
    : 1;
  const actions: Partial<Record<string, () => void>> = {
    ArrowLeft: () => inspect(position - stride),
    ArrowRight: () => inspect(position + stride),
    Home: () => inspect(0),
    End: () => inspect(length - 1),
    "+": () => scale(0.5),
    "=": () => scale(0.5),
    "-": () => scale(2),
    "0": () => store.set({ zoom: null, usage_zoom: null }),
  };
  const action = actions[event.key];
  // The browser uses Alt with arrow keys.
  if (action === undefined || (event.altKey && !"+=-".includes(event.key))) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}
