import type { View } from "../../layout/axis/span";
import type { FrameBuffer } from "./raster";

/** A picture moved by whole pixels: the view it shows, and its offset. */
export interface Shift {
  /** Pixel (x, y) shows what (x + across, y + down) showed. */
  across: number;
  down: number;
  view: View;
}

/** A part of a picture, in pixels. */
export interface Strip {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Two windows have the same scale if their far ends differ by less than this many pixels. */
const SAME_SCALE = 0.01;

/**
 * Return the move from one view to another, to the nearest pixel; null if the scale differs or most of the
 * picture changes.
 */
export function findShift(view: View, wanted: View, width: number, height: number): Shift | null {
  const [perX, perY] = [(view.x[1] - view.x[0]) / width, (view.y[1] - view.y[0]) / height];
  const grownX = wanted.x[1] - wanted.x[0] - (view.x[1] - view.x[0]);
  const grownY = wanted.y[1] - wanted.y[0] - (view.y[1] - view.y[0]);
  if (Math.abs(grownX / perX) > SAME_SCALE || Math.abs(grownY / perY) > SAME_SCALE) return null;
  const across = Math.round((wanted.x[0] - view.x[0]) / perX);
  const down = Math.round((view.y[1] - wanted.y[1]) / perY);
  if (Math.abs(across) > width / 2 || Math.abs(down) > height / 2) return null;
  const [alongX, alongY] = [across * perX, down * perY];
  return {
    across,
    down,
    view: { x: [view.x[0] + alongX, view.x[1] + alongX], y: [view.y[0] - alongY, view.y[1] - alongY] },
  };
}

/** Return the parts of a moved picture that must be drawn: columns at one side, rows at the top or bottom. */
export function exposedStrips({ across, down }: Shift, width: number, height: number): Strip[] {
  const strips: Strip[] = [];
  if (across !== 0)
    strips.push({ left: across > 0 ? width - across : 0, top: 0, width: Math.abs(across), height });
  if (down !== 0) strips.push({ left: 0, top: down > 0 ? height - down : 0, width, height: Math.abs(down) });
  return strips;
}

/** Move the pixels. The exposed strips contain leftover pixels until they are drawn. */
export function moveFrame({ width, pixels, ids }: FrameBuffer, { across, down }: Shift): void {
  const by = down * width + across;
  for (const plane of [pixels, ids])
    plane.copyWithin(Math.max(-by, 0), Math.max(by, 0), plane.length - Math.max(-by, 0));
}

/** Return the window that a strip of a picture shows. */
export function stripView(strip: Strip, { x, y }: View, width: number, height: number): View {
  const [perX, perY] = [(x[1] - x[0]) / width, (y[1] - y[0]) / height];
  return {
    x: [x[0] + strip.left * perX, x[0] + (strip.left + strip.width) * perX],
    y: [y[1] - (strip.top + strip.height) * perY, y[1] - strip.top * perY],
  };
}

/** Copy the picture of a strip into its place. */
export function putStrip(frame: FrameBuffer, strip: Strip, drawn: FrameBuffer): void {
  for (let row = 0; row < strip.height; row++) {
    const from = row * strip.width;
    const to = (strip.top + row) * frame.width + strip.left;
    frame.pixels.set(drawn.pixels.subarray(from, from + strip.width), to);
    frame.ids.set(drawn.ids.subarray(from, from + strip.width), to);
  }
}
