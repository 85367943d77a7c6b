import { cssColor, rowColors } from "../../base/colors";
import { formatBytes, formatShare } from "../../base/units";
import type { SegmentPiece, Segment } from "../../layout/address_map/address_map";
import { segmentPieces } from "../../layout/address_map/address_map";
import type { Rows } from "../../payload/recording/rows";
import type { Picture } from "../drawing/picture";
import { roleLegend } from "../drawing/role_legend";
import { withLightTheme } from "../drawing/picture";
import { HATCH, hatchDefinition, type Surface, SvgSurface } from "../drawing/svg_surface";

export const STRIP_HEIGHT = 22;
/** Minimum width in pixels for a gap between neighbors of the same color. */
const MIN_GAP_WIDTH = 4;

/** Fill the chunks in use of a segment that starts at (left, top). */
export function paintPieces(
  surface: Surface,
  drawn: readonly SegmentPiece[],
  dark: boolean,
  left: number,
  top: number,
): void {
  const palette = rowColors(dark);
  for (const { x, width, color: color } of drawn) {
    surface.fillStyle = cssColor(palette[color]);
    surface.fillRect(left + x, top, width >= MIN_GAP_WIDTH ? width - 1 : width, STRIP_HEIGHT);
  }
}

/** Return an address as text; empty if unknown. */
export function formatAddress(address: number): string {
  return Number.isNaN(address) ? "" : `0x${address.toString(16)}`;
}

/** Return a segment's size, use and largest hole as text. */
export function describeSegment({ size, used, hole }: Segment): string {
  const free = hole.to - hole.from;
  return (
    `${formatBytes(size)}, ${formatShare(used, Math.max(size, 1))} in use` +
    (free > 0 ? `, largest hole ${formatBytes(free)}` : "")
  );
}

const ADDRESS_WIDTH = 124;
const STRIP_WIDTH = 760;
const DESCRIPTION_WIDTH = 280;
const GAP = 10;
const LINE_HEIGHT = STRIP_HEIGHT + 6;

/** Draw the strips for a file; `span` bytes take the full width. */
export function drawSegments(segments: readonly Segment[], rows: Rows, span: number): Picture {
  const surface = new SvgSurface();
  const colors = withLightTheme(document.body, (holder) => {
    const style = getComputedStyle(holder);
    const read = (name: string): string => style.getPropertyValue(name).trim();
    return { ink: read("--ink"), muted: read("--muted"), line: read("--line") };
  });
  const left = ADDRESS_WIDTH + GAP;
  const scale = STRIP_WIDTH / span;
  segments.forEach((segment, i) => {
    const top = i * LINE_HEIGHT;
    const width = Math.max(segment.size * scale, 2);
    surface.fillStyle = colors.muted;
    surface.fillText(formatAddress(segment.address), 0, top + STRIP_HEIGHT / 2);
    surface.fillStyle = HATCH;
    surface.title(describeSegment(segment));
    surface.fillRect(left, top, width, STRIP_HEIGHT);
    paintPieces(surface, segmentPieces(segment, rows, scale), false, left, top);
    surface.strokeStyle = colors.line;
    surface.strokeRect(left, top, width, STRIP_HEIGHT);
    surface.fillStyle = colors.ink;
    surface.fillText(describeSegment(segment), left + STRIP_WIDTH + GAP, top + STRIP_HEIGHT / 2);
  });
  const drawn = segments.flatMap((segment) => segmentPieces(segment, rows, scale).map(({ color }) => color));
  const inUse =
    rows.color === rows.role ? roleLegend(drawn) : [{ color: "", label: "In use: one color per size." }];
  return {
    width: left + STRIP_WIDTH + GAP + DESCRIPTION_WIDTH,
    height: segments.length * LINE_HEIGHT,
    shapes: [hatchDefinition(colors.line), ...surface.shapes],
    legend: [...inUse, { color: colors.line, label: "free" }],
  };
}
