import { createContext, options } from "preact";
import { useEffect, useState } from "preact/hooks";

/** True while the page is being printed: charts are light, and tables have all their lines. */
export const PrintingContext = createContext(false);

/** Time for the charts that are drawn in workers. */
const DRAW_MS = 400;
const PREPARE = "tb-memplugin-print";

/** Prepare the page for printing, and print it: alone where it is a frame of its host. */
export function printPage(): void {
  window.dispatchEvent(new Event(PREPARE));
  setTimeout(() => window.print(), DRAW_MS);
}

/** Return true from before the page is printed until after it. */
export function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const media = window.matchMedia("print");
    const start = (): void => atOnce(() => setPrinting(true));
    const end = (): void => setPrinting(false);
    const follow = (): void => (media.matches ? start() : end());
    const onKeyDown = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key !== "p") return;
      event.preventDefault();
      printPage();
    };
    const stop = new AbortController();
    window.addEventListener(PREPARE, start, stop);
    window.addEventListener("beforeprint", start, stop);
    window.addEventListener("afterprint", end, stop);
    media.addEventListener("change", follow, stop);
    document.addEventListener("keydown", onKeyDown, stop);
    return () => stop.abort();
  }, []);
  return printing;
}

/** Render a change before the next line of code: browsers lay out the printed page right after beforeprint. */
function atOnce(change: () => void): void {
  // Charts keep the width that they are drawn for, and browsers scale the whole page to the paper.
  document.documentElement.style.setProperty("--print-width", `${document.documentElement.clientWidth}px`);
  // eslint-disable-next-line @typescript-eslint/unbound-method -- put back as it was
  const { debounceRendering } = options;
  options.debounceRendering = (render) => render();
  change();
  if (debounceRendering === undefined) delete options.debounceRendering;
  else options.debounceRendering = debounceRendering;
}
