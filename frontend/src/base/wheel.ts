/** A pause this long ends a scroll gesture; trackpads send inertia events about every 16 ms. */
const GESTURE_PAUSE_MS = 200;

/**
 * Call `zoom` for wheel events over an element, unless the page is scrolling past it: a wheel gesture that
 * began elsewhere stays a scroll. Return a function that stops listening.
 */
export function onWheel(element: HTMLElement, zoom: (event: WheelEvent) => void): () => void {
  let scrolled = -Infinity;
  const onScroll = (): void => {
    scrolled = performance.now();
  };
  const onEvent = (event: WheelEvent): void => {
    if (performance.now() - scrolled < GESTURE_PAUSE_MS) {
      scrolled = performance.now();
      return;
    }
    event.preventDefault();
    zoom(event);
  };
  window.addEventListener("scroll", onScroll, { passive: true });
  element.addEventListener("wheel", onEvent, { passive: false });
  return () => {
    window.removeEventListener("scroll", onScroll);
    element.removeEventListener("wheel", onEvent);
  };
}
