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

/** Move a span by `delta` within the limit. */
export function pan(span: Span, limit: Span, delta: number): Span {
  const shift = Math.min(Math.max(delta, limit[0] - span[0]), limit[1] - span[1]);
  return [span[0] + shift, span[1] + shift];
}

/**
 * Scale a span by `factor` (below 1 zooms in). `anchor` keeps its place on the screen. The result is at least
 * `least` long and stays within the limit.
 */
export function zoom(span: Span, limit: Span, anchor: number, factor: number, least: number): Span {
  const whole = limit[1] - limit[0];
  const length = Math.min(Math.max((span[1] - span[0]) * factor, Math.min(least, whole)), whole);
  const share = (anchor - span[0]) / (span[1] - span[0]);
  const start = Math.min(Math.max(anchor - share * length, limit[0]), limit[1] - length);
  return [start, start + length];
}

/**
 * Return a span around [low, high] with a margin on both sides, at least `least` long and within the limit.
 */
export function spanAround(low: number, high: number, limit: Span, least: number): Span {
  // The range takes a third of the picture, so that the neighbors that explain a block stay visible.
  const length = Math.min(Math.max((high - low) * 3, least), limit[1] - limit[0]);
  const start = Math.min(Math.max((low + high - length) / 2, limit[0]), limit[1] - length);
  return [start, start + length];
}

/** Fewer than four positions show no context; no allocator aligns to less than 16 bytes. */
export const MIN_POSITIONS = 4;
export const MIN_BYTES = 16;

export function viewAround(box: TimelineBox, extent: View): View {
  return {
    x: spanAround(box.start, box.end, extent.x, MIN_POSITIONS),
    y: spanAround(box.bottom, box.top, extent.y, MIN_BYTES),
  };
}

/**
 * Resolution of saved positions and bytes. At the closest zoom, four positions wide, a pixel is about 30
 * steps.
 */
const STEPS_PER_UNIT = 1e4;

/**
 * Return the part of a view to save: null for the whole axis, so that an untouched page has a short URL.
 * Otherwise rounded numbers that a URL keeps exactly, so that the restored view is identical to the pixel.
 */
export function saveSpan(span: Span, limit: Span): Span | null {
  return span[0] <= limit[0] && span[1] >= limit[1] ? null : [roundToStep(span[0]), roundToStep(span[1])];
}

function roundToStep(value: number): number {
  return Math.round(value * STEPS_PER_UNIT) / STEPS_PER_UNIT;
}

/** Return the span for a saved one, which may come from another recording's URL. */
export function restoreSpan(span: Span | null, limit: Span): Span {
  if (span === null) return limit;
  const start = Math.min(Math.max(span[0], limit[0]), limit[1]);
  const end = Math.min(Math.max(span[1], limit[0]), limit[1]);
  return end > start ? [start, end] : limit;
}

/** Move a box into the view. The scale is kept if the box fits; otherwise the view frames the box. */
export function reveal(view: View, box: TimelineBox, extent: View): View {
  const wide = view.x[1] - view.x[0] >= box.end - box.start;
  const high = view.y[1] - view.y[0] >= box.top - box.bottom;
  if (!wide || !high) return viewAround(box, extent);
  return {
    x: pan(view.x, extent.x, panDistance(view.x, box.start, box.end)),
    y: pan(view.y, extent.y, panDistance(view.y, box.bottom, box.top)),
  };
}

function panDistance(span: Span, low: number, high: number): number {
  if (low < span[0]) return low - span[0];
  return high > span[1] ? high - span[1] : 0;
}
