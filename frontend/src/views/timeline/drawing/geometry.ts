import type { View } from "../../../layout/timeline_blocks";

/** The same gutters as the usage chart above, so that one position lies at one x in both. */
export const GUTTER_LEFT = 64;
export const GUTTER_RIGHT = 16;
export const AXIS_HEIGHT = 22;

/** Size of the plot with its gutters and axis, in CSS pixels. */
export interface Size {
  width: number;
  height: number;
}

/** Size of the picture of the blocks inside. */
export function pictureSize({ width, height }: Size): Size {
  return {
    width: Math.max(width - GUTTER_LEFT - GUTTER_RIGHT, 1),
    height: Math.max(height - AXIS_HEIGHT, 1),
  };
}

/** A pixel ratio above 2 is not seen in flat blocks, and costs the square of it. */
export function pixelRatio(): number {
  return Math.min(window.devicePixelRatio || 1, 2);
}

/** Value of the axis and byte under a pixel of the picture. */
export function valueAt(view: View, picture: Size, x: number, y: number): { along: number; byte: number } {
  return {
    along: view.x[0] + (x / picture.width) * (view.x[1] - view.x[0]),
    byte: view.y[1] - (y / picture.height) * (view.y[1] - view.y[0]),
  };
}
