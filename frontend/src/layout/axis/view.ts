import type { TimelineBox, Span, View } from "./span";

/** Moves a span by `delta` without leaving the limit. */
export function pan(span: Span, limit: Span, delta: number): Span {
  const shift = Math.min(Math.max(delta, limit[0] - span[0]), limit[1] - span[1]);
  return [span[0] + shift, span[1] + shift];
}

/**
 * Scales a span by `factor` (below 1 zooms in) so that `anchor` keeps its place on the screen, no smaller than `least`
 * and within the limit.
 */
export function zoom(span: Span, limit: Span, anchor: number, factor: number, least: number): Span {
  const whole = limit[1] - limit[0];
  const length = Math.min(Math.max((span[1] - span[0]) * factor, Math.min(least, whole)), whole);
  const share = (anchor - span[0]) / (span[1] - span[0]);
  const start = Math.min(Math.max(anchor - share * length, limit[0]), limit[1] - length);
  return [start, start + length];
}

/** A span around [low, high] with air on both sides, no smaller than `least`, within the limit. */
export function spanAround(low: number, high: number, limit: Span, least: number): Span {
  // A third of the picture: the neighbours that explain a block stay in sight.
  const length = Math.min(Math.max((high - low) * 3, least), limit[1] - limit[0]);
  const start = Math.min(Math.max((low + high - length) / 2, limit[0]), limit[1] - length);
  return [start, start + length];
}

/** Four positions are the least worth seeing side by side; 16 bytes is the least that any allocator aligns to. */
export const MIN_POSITIONS = 4;
export const MIN_BYTES = 16;

export function viewAround(box: TimelineBox, extent: View): View {
  return {
    x: spanAround(box.start, box.end, extent.x, MIN_POSITIONS),
    y: spanAround(box.bottom, box.top, extent.y, MIN_BYTES),
  };
}

/** Steps of a remembered position or byte: a pixel of the closest view, four positions wide, is some thirty of them. */
const STEPS_PER_UNIT = 1e4;

/**
 * What a view is remembered as: null where it is all there is, so that an untouched page has a plain address. Else in
 * short numbers that an address holds as they are: what is drawn from it again is the same to the pixel.
 */
export function saveSpan(span: Span, limit: Span): Span | null {
  return span[0] <= limit[0] && span[1] >= limit[1] ? null : [roundToStep(span[0]), roundToStep(span[1])];
}

function roundToStep(value: number): number {
  return Math.round(value * STEPS_PER_UNIT) / STEPS_PER_UNIT;
}

/** The span to show for a remembered one, which an address may have brought from another recording. */
export function restoreSpan(span: Span | null, limit: Span): Span {
  if (span === null) return limit;
  const start = Math.min(Math.max(span[0], limit[0]), limit[1]);
  const end = Math.min(Math.max(span[1], limit[0]), limit[1]);
  return end > start ? [start, end] : limit;
}

/** The view with this box moved into sight and kept at its scale where it fits, framed where it does not. */
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
