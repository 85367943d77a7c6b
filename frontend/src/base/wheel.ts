/** A pause this long ends a scroll gesture; trackpads send inertia events about every 16 ms. */
const GESTURE_PAUSE_MS = 200;

/**
 * Offer wheel events over an element to `use`, which returns false for those that scroll the page. While the page
 * scrolls, events without a modifier are not offered: the pointer only comes past. Return a function that stops
 * listening.
 */
export function onWheel(element: HTMLElement, use: (event: WheelEvent) => boolean): () => void {
  let scrolled = -Infinity;
  const onScroll = (): void => {
    scrolled = performance.now();
  };
  const onEvent = (event: WheelEvent): void => {
    if (isPlain(event) && performance.now() - scrolled < GESTURE_PAUSE_MS) {
      scrolled = performance.now();
      return;
    }
    if (use(event)) event.preventDefault();
  };
  window.addEventListener("scroll", onScroll, { passive: true });
  element.addEventListener("wheel", onEvent, { passive: false });
  return () => {
    window.removeEventListener("scroll", onScroll);
    element.removeEventListener("wheel", onEvent);
  };
}

function isPlain(event: WheelEvent): boolean {
  return !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
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
