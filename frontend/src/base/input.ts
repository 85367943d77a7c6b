/** Inputs that take no text. */
const WITHOUT_TEXT = "[type=checkbox], [type=radio], [type=button], [type=range]";

/** Movement in pixels below which a press is a click. */
export const CLICK_SLACK = 4;
/** Distance in pixels within which a click along an axis means the peak: a pixel can cover thousands of positions. */
export const PEAK_SNAP = 5;

/** Return true if the focused element takes a key as text or as a choice. */
export function isTyping(event: KeyboardEvent): boolean {
  return isEditable(event.target);
}

/** Return true for an element that takes text or has choices. */
export function isEditable(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.matches("input, select, textarea, [contenteditable]") &&
    !target.matches(WITHOUT_TEXT)
  );
}

/** Keys that zoom in and out, and pan to the left and right, as in Perfetto. */
export type MoveKey = "w" | "s" | "a" | "d";

/** A press of such a key. */
export interface Move {
  key: MoveKey;
  /** Larger steps. */
  shift: boolean;
  /** The last event of a pointer over the chart; null if it is elsewhere. */
  pointer: PointerEvent | null;
}

/** Scale of the visible span after W. */
const ZOOM_IN = 0.7;

/** Return the factor by which W or S scales the visible span; null for other keys. */
export function zoomOf({ key, shift }: Pick<Move, "key" | "shift">): number | null {
  const factor = shift ? ZOOM_IN ** 2 : ZOOM_IN;
  return key === "w" ? factor : key === "s" ? 1 / factor : null;
}

/** Return the share of the visible span by which A or D pans to the right. */
export function panOf({ key, shift }: Pick<Move, "key" | "shift">): number {
  const share = shift ? 0.5 : 0.125;
  return key === "d" ? share : key === "a" ? -share : 0;
}

interface Chart {
  element: HTMLElement;
  move: (move: Move) => void;
  pointer: PointerEvent | null;
}

/** Charts on the page. Of the charts with the pointer or the focus, the last one used takes the keys. */
const charts: Chart[] = [];

/** Call `move` for W A S D while the pointer or the focus is on a chart, until the signal aborts. */
export function onMoveKeys(element: HTMLElement, move: Chart["move"], signal: AbortSignal): void {
  const chart: Chart = { element, move, pointer: null };
  const use = (): void => {
    charts.splice(charts.indexOf(chart), 1);
    charts.push(chart);
  };
  const follow = (event: PointerEvent): void => {
    chart.pointer = event;
    use();
  };
  const leave = (): void => {
    chart.pointer = null;
  };
  element.addEventListener("focusin", use, { signal });
  element.addEventListener("pointermove", follow, { signal });
  element.addEventListener("pointerleave", leave, { signal });
  if (charts.length === 0) document.addEventListener("keydown", onKeyDown);
  charts.push(chart);
  signal.addEventListener("abort", () => {
    charts.splice(charts.indexOf(chart), 1);
    if (charts.length === 0) document.removeEventListener("keydown", onKeyDown);
  });
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  const key = letterOf(event);
  if (key !== "w" && key !== "a" && key !== "s" && key !== "d") return;
  if (document.querySelector("dialog[open]") !== null) return;
  const chart = charts.findLast(
    ({ element, pointer }) => pointer !== null || element.contains(document.activeElement),
  );
  if (chart === undefined) return;
  chart.move({ key, shift: event.shiftKey, pointer: chart.pointer });
  event.preventDefault();
}

/** Return the letter of a key; on keyboards of other alphabets, the Latin letter at the key's place. */
function letterOf({ key, code }: KeyboardEvent): string {
  return /^[a-z]$/i.test(key) ? key.toLowerCase() : code.replace("Key", "").toLowerCase();
}

/** A pause this long ends a scroll gesture; trackpads send inertia events about every 16 ms. */
const GESTURE_PAUSE_MS = 200;

/**
 * Offer wheel events over an element to `use`, which returns false for events that scroll the page. While the page
 * scrolls, events without a modifier are not offered, because the element only passes below the pointer. Listens
 * until the signal aborts.
 */
export function onWheel(
  element: HTMLElement,
  use: (event: WheelEvent) => boolean,
  signal: AbortSignal,
): void {
  let scrolled = -Infinity;
  const onScroll = (): void => {
    scrolled = performance.now();
  };
  const onEvent = (event: WheelEvent): void => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    if (plain && performance.now() - scrolled < GESTURE_PAUSE_MS) {
      scrolled = performance.now();
      return;
    }
    if (use(event)) event.preventDefault();
  };
  window.addEventListener("scroll", onScroll, { passive: true, signal });
  element.addEventListener("wheel", onEvent, { passive: false, signal });
}

/** Return true for the wheel with Ctrl or Cmd, and for a pinch on a trackpad, which browsers send as Ctrl + wheel. */
export function isPinch(event: WheelEvent): boolean {
  return event.ctrlKey || event.metaKey;
}

/** Return the distance of a pan to the right: a sideways wheel, or Shift + wheel. 0 for other events. */
export function sidewaysBy(event: WheelEvent): number {
  if (isPinch(event) || event.altKey) return 0;
  if (event.shiftKey) return event.deltaX || event.deltaY;
  return Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
}

/** Zoom per wheel unit: one notch of a mouse wheel, 100 units, zooms by 1.22. */
const ZOOM_PER_UNIT = 0.002;

/** Return the factor by which an event scales the visible span; below 1 zooms in. */
export function zoomFactor(event: WheelEvent): number {
  // A pinch sends a tenth of the wheel's delta. Firefox can count in lines, with Ctrl too.
  const line = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 33 : 1;
  const pinch = isPinch(event) && Math.abs(event.deltaY * line) < 50 ? 5 : 1;
  return Math.exp(event.deltaY * line * ZOOM_PER_UNIT * pinch);
}

/** Move the focus between the elements of a group with the left and right keys; Tab stops once for the group. */
export function goToNext(event: KeyboardEvent): void {
  if (!(event.target instanceof HTMLElement)) return;
  const { previousElementSibling: before, nextElementSibling: after } = event.target;
  const next = event.key === "ArrowLeft" ? before : event.key === "ArrowRight" ? after : null;
  if (!(next instanceof HTMLElement)) return;
  event.preventDefault();
  next.focus();
}

/** Return a listener that calls `act` for Enter and Space, for elements of a drawing that act as buttons. */
export function onPress(act: () => void): (event: KeyboardEvent) => void {
  return (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  };
}

/** One stop of the Tab key for all tabs; arrows go from one to the next, Enter opens it: others may take long. */
export function moveTabFocus(event: KeyboardEvent): void {
  const by = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
  if (by === undefined || !(event.currentTarget instanceof HTMLElement)) return;
  const tabs = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
  const at = tabs.findIndex((tab) => tab === document.activeElement);
  event.preventDefault();
  tabs.at(Math.min(Math.max(at + by, 0), tabs.length - 1))?.focus();
}
