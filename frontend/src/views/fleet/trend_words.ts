import { formatBytes, formatCounted } from "../../base/units";
import type { TrendPoint, TrendSeries } from "../../payload/generated/answers";
import type { TrendBy } from "../../payload/generated/constants";

/** Return the name of a point: its day, or its capture. */
export function pointName(point: TrendPoint, by: TrendBy): string {
  return by === "day" ? point.day : point.capture;
}

/** Return a change of the peak with its sign. */
export function changeText(bytes: number): string {
  return bytes > 0 ? `+${formatBytes(bytes)}` : formatBytes(bytes);
}

/** Return what raised the peak, and by how much; empty for a point without a rise. */
export function riseText({ rise_bytes: rise, because }: TrendPoint): string {
  return because === null ? "" : `${changeText(rise)}: ${because}`;
}

/** Return the name of the upper line. */
export function upperName({ is_program: isProgram }: TrendSeries): string {
  return isProgram ? "reserved" : "worst device";
}

/** Return a point in words. */
export function pointSentence(series: TrendSeries, point: TrendPoint, by: TrendBy): string {
  const of = formatCounted(point.count, series.is_program ? "host" : "device");
  const raised = point.because === null ? "" : `, ${riseText(point)}`;
  return `${pointName(point, by)}: ${formatBytes(point.peak_bytes)} on ${of}${raised}`;
}

/** Return what a click on a point does. */
export function actionText({ because }: TrendPoint, by: TrendBy): string {
  return because === null ? "Open it" : `Compare with the ${by} before`;
}
