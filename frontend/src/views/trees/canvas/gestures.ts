import { onMoveKeys } from "../../../base/keys";
import { isPinch, onWheel, zoomFactor } from "../../../base/wheel";

/** Steps of a tree's chart, which zooms from node to node. */
interface Steps {
  in: () => void;
  out: () => void;
  beside: (by: number) => void;
}

/** Zoom for a step from one node to another, less than that of one notch of a mouse wheel. */
const ZOOM_PER_STEP = 1.2;

/** Listen to Ctrl + wheel, pinch, and W A S D over a tree. Return a function that stops listening. */
export function bindSteps(element: HTMLElement, steps: { current: Steps }): () => void {
  let zoomed = 1;
  const unwheel = onWheel(element, (event) => {
    if (!isPinch(event)) return false;
    const factor = zoomFactor(event);
    // A turn in the other direction starts anew.
    zoomed = (zoomed - 1) * (factor - 1) < 0 ? factor : zoomed * factor;
    if (zoomed > ZOOM_PER_STEP) steps.current.out();
    else if (zoomed < 1 / ZOOM_PER_STEP) steps.current.in();
    else return true;
    zoomed = 1;
    return true;
  });
  const unkey = onMoveKeys(element, ({ key }) => {
    if (key === "w") steps.current.in();
    else if (key === "s") steps.current.out();
    else steps.current.beside(key === "d" ? 1 : -1);
  });
  return () => {
    unwheel();
    unkey();
  };
}
