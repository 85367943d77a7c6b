/** Scroll positions of the places that a user has left. */
export interface ScrollPlaces {
  /** Keep the position of the place that is left. The next one starts at its top, or where it was left before. */
  move: (from: string, to: string, isBack: boolean) => void;
}

/** Milliseconds for which a page is held at its position after it has grown to it. */
const REST_MS = 1000;
const INPUTS = ["wheel", "touchstart", "pointerdown", "keydown"] as const;

/** Scroll a window by hand: a browser restores positions before the answers of the server are on the page. */
export function createScrollPlaces(view: Window): ScrollPlaces {
  view.history.scrollRestoration = "manual";
  const left = new Map<string, number>();
  let stop = (): void => undefined;
  return {
    move: (from, to, isBack) => {
      stop();
      left.set(from, view.scrollY);
      const top = isBack ? (left.get(to) ?? 0) : 0;
      view.scrollTo(0, top);
      if (top > 0) stop = keepAt(view, top);
    },
  };
}

/** Scroll to a position whenever the page has another height, until it rests there or the user does something. */
function keepAt(view: Window, top: number): () => void {
  let timer = 0;
  const observer = new ResizeObserver(() => {
    view.scrollTo(0, top);
    view.clearTimeout(timer);
    if (view.scrollY >= top - 1) timer = view.setTimeout(stop, REST_MS);
  });
  const stop = (): void => {
    observer.disconnect();
    view.clearTimeout(timer);
    for (const input of INPUTS) view.removeEventListener(input, stop);
  };
  for (const input of INPUTS) view.addEventListener(input, stop, { passive: true });
  observer.observe(view.document.body);
  return stop;
}
