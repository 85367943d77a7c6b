import { pan, type PixelBox, type Span, type View } from "../axis";
import { xPixel, yPixel } from "./rects";

/** A smaller window could be neither seen nor dragged. */
const MIN_PIXELS = 6;

/** Return the view's window on a minimap of width x height pixels. */
export function windowOnMap(view: View, extent: View, width: number, height: number): PixelBox {
  const [x, across] = fitWindow(
    xPixel(view.x[0], extent.x, width),
    xPixel(view.x[1], extent.x, width),
    width,
  );
  const [y, down] = fitWindow(
    yPixel(view.y[1], extent.y, height),
    yPixel(view.y[0], extent.y, height),
    height,
  );
  return { x, y, width: across, height: down };
}

function fitWindow(from: number, to: number, limit: number): [number, number] {
  const length = Math.min(Math.max(to - from, MIN_PIXELS), limit);
  const start = Math.min(Math.max((from + to - length) / 2, 0), limit - length);
  return [start, length];
}

export function isInside(window: PixelBox, x: number, y: number): boolean {
  return x >= window.x && x <= window.x + window.width && y >= window.y && y <= window.y + window.height;
}

/** Return the view centered on a pixel of the minimap. */
export function centerOn(
  view: View,
  extent: View,
  x: number,
  y: number,
  width: number,
  height: number,
): View {
  const position = extent.x[0] + (x / width) * (extent.x[1] - extent.x[0]);
  const byte = extent.y[1] - (y / height) * (extent.y[1] - extent.y[0]);
  return {
    x: pan(view.x, extent.x, position - middle(view.x)),
    y: pan(view.y, extent.y, byte - middle(view.y)),
  };
}

/** Return the view after the pointer moved by (dx, dy) pixels on the minimap. */
export function dragView(
  view: View,
  extent: View,
  dx: number,
  dy: number,
  width: number,
  height: number,
): View {
  return {
    x: pan(view.x, extent.x, (dx / width) * (extent.x[1] - extent.x[0])),
    y: pan(view.y, extent.y, (-dy / height) * (extent.y[1] - extent.y[0])),
  };
}

function middle(span: Span): number {
  return (span[0] + span[1]) / 2;
}
