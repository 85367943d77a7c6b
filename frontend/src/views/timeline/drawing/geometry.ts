import type { View } from "../../../layout/axis/view";
import type { Size } from "../../browser/use_size";
import { GUTTER_LEFT, GUTTER_RIGHT } from "../../drawing/surface";

/** Height of the x axis with its title, in CSS pixels. */
export const AXIS_HEIGHT = 36;

/** Return the size of the blocks' picture inside a plot of this size with its gutters and axis. */
export function pictureSize({ width, height }: Size): Size {
  return {
    width: Math.max(width - GUTTER_LEFT - GUTTER_RIGHT, 1),
    height: Math.max(height - AXIS_HEIGHT, 1),
  };
}

/** A pixel ratio above 2 makes no visible difference in flat blocks, and its cost grows with the square. */
export function pixelRatio(): number {
  return Math.min(window.devicePixelRatio || 1, 2);
}

/** Return the axis value and the byte at a pixel of the picture. */
export function valueAt(view: View, picture: Size, x: number, y: number): { along: number; byte: number } {
  return {
    along: view.x[0] + (x / picture.width) * (view.x[1] - view.x[0]),
    byte: view.y[1] - (y / picture.height) * (view.y[1] - view.y[0]),
  };
}
