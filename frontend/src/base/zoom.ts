/** Windows of an axis. `null` is the whole axis, so that "all" stays "all" when the data changes. */
export type Zoom = readonly [number, number] | null;

/** The window in full: where it begins and ends. */
export function windowOf(zoom: Zoom, length: number): readonly [number, number] {
  return zoom ?? [0, length];
}

/** Moves a window back onto the axis, keeps it at least `least` long, and gives null when it is all of it. */
export function clampZoom(from: number, to: number, length: number, least = 4): Zoom {
  const span = Math.min(Math.max(to - from, Math.min(least, length)), length);
  if (span >= length) return null;
  const middle = (from + to) / 2;
  const start = Math.min(Math.max(to - from < span ? middle - span / 2 : from, 0), length - span);
  return [start, start + span];
}

/** Zooms by `factor` (< 1 is closer) around `at`, which stays where it is on the screen. */
export function zoomAround(zoom: Zoom, at: number, factor: number, length: number): Zoom {
  const [from, to] = windowOf(zoom, length);
  return clampZoom(at - (at - from) * factor, at + (to - at) * factor, length);
}

/** Moves the window by `share` of its own span. */
export function pan(zoom: Zoom, share: number, length: number): Zoom {
  if (zoom === null) return null;
  const step = (zoom[1] - zoom[0]) * share;
  return clampZoom(zoom[0] + step, zoom[1] + step, length);
}
