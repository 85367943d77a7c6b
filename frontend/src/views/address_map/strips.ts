import { cssColor, roleColors } from "../../base/colors";
import { formatBytes, formatShare } from "../../base/units";
import type { SegmentPiece, Segment } from "../../layout/address_map/address_map";
import { segmentPieces } from "../../layout/address_map/address_map";
import type { Rows } from "../../payload/recording/rows";
import type { Picture } from "../drawing/picture";
import { withLightTheme } from "../drawing/picture";
import { HATCH, hatchDefinition, type Surface, SvgSurface } from "../drawing/svg_surface";

export const STRIP_HEIGHT = 22;
/** Narrower than this there is no room for the gap that tells two neighbors of one color apart. */
const MIN_GAP_WIDTH = 4;

/** Fills what is in use of a segment that begins at (left, top). */
export function paintPieces(
  surface: Surface,
  drawn: readonly SegmentPiece[],
  dark: boolean,
  left: number,
  top: number,
): void {
  const palette = roleColors(dark);
  for (const { x, width, color: color } of drawn) {
    surface.fillStyle = cssColor(palette[color]);
    surface.fillRect(left + x, top, width >= MIN_GAP_WIDTH ? width - 1 : width, STRIP_HEIGHT);
  }
}

/** An address in words; nothing where it is not known. */
export function formatAddress(address: number): string {
  return Number.isNaN(address) ? "" : `0x${address.toString(16)}`;
}

/** Its size, how full it is, and its largest hole. */
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

/** The strips for a file; `span` bytes are as wide as all of the place for them. */
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
  return {
    width: left + STRIP_WIDTH + GAP + DESCRIPTION_WIDTH,
    height: segments.length * LINE_HEIGHT,
    shapes: [hatchDefinition(colors.line), ...surface.shapes],
  };
}
