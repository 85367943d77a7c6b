/** Lowest and highest visible value of one axis. */
export type Span = readonly [number, number];

/** A window of the timeline, or all of it: values of the axis along x, bytes along y. */
export interface View {
  x: Span;
  y: Span;
}

export interface TimelineBox {
  start: number;
  end: number;
  bottom: number;
  top: number;
}
