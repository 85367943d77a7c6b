/**
 * Space left and right of a plot, in CSS pixels. The usage chart, its span lanes and the timeline share it, so that a
 * position has the same x in all of them.
 */
export const GUTTER_LEFT = 64;
export const GUTTER_RIGHT = 16;
