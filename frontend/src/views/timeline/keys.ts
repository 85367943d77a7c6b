import type { View } from "../../layout/axis/span";
import { MIN_BYTES, MIN_POSITIONS, pan, zoom } from "../../layout/axis/view";

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
  switch (event.key) {
    case "ArrowLeft":
      return across(-share);
    case "ArrowRight":
      return across(share);
    case "ArrowUp":
      return up(share);
    case "ArrowDown":
      return up(-share);
    case "Home":
      return across(-Infinity);
    case "End":
      return across(Infinity);
    case "+":
    case "=":
      return scaled(0.5);
    case "-":
    case "_":
      return scaled(2);
    case "0":
      return extent;
    default:
      return null;
  }
}
