import { cssColor, roleColors } from "../../base/colors";
import { formatBytes, formatShare } from "../../base/units";
import type { SegmentPiece, Segment } from "../../layout/address_map/address_map";
import { segmentPieces } from "../../layout/address_map/address_map";
import type { Rows } from "../../payload/recording/rows";
import type { Drawing } from "../drawing/picture";
import { inLight } from "../drawing/picture";
import { HATCH, hatchDefinition, type Surface, SvgSurface } from "../drawing/svg_surface";

export const STRIP_HEIGHT = 22;
/** Narrower than this there is no room for the gap that tells two neighbors of one color apart. */
const GAP_FROM = 4;

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
    surface.fillRect(left + x, top, width >= GAP_FROM ? width - 1 : width, STRIP_HEIGHT);
  }
}

/** An address in words; nothing where it is not known. */
export function hex(address: number): string {
  return Number.isNaN(address) ? "" : `0x${address.toString(16)}`;
}

/** Its size, how full it is, and its largest hole. */
export function segmentWords({ size, used, hole }: Segment): string {
  const free = hole.to - hole.from;
  return (
    `${formatBytes(size)}, ${formatShare(used, Math.max(size, 1))} in use` +
    (free > 0 ? `, largest hole ${formatBytes(free)}` : "")
  );
}

const ADDRESSES = 124;
const STRIPS = 760;
const WORDS = 280;
const GAP = 10;
const LINE = STRIP_HEIGHT + 6;

/** The strips for a file; `span` bytes are as wide as all of the place for them. */
export function drawSegments(segments: readonly Segment[], rows: Rows, span: number): Drawing {
  const surface = new SvgSurface();
  const colors = inLight(document.body, (holder) => {
    const style = getComputedStyle(holder);
    const read = (name: string): string => style.getPropertyValue(name).trim();
    return { ink: read("--ink"), muted: read("--muted"), line: read("--line") };
  });
  const left = ADDRESSES + GAP;
  const scale = STRIPS / span;
  segments.forEach((segment, i) => {
    const top = i * LINE;
    const width = Math.max(segment.size * scale, 2);
    surface.fillStyle = colors.muted;
    surface.fillText(hex(segment.address), 0, top + STRIP_HEIGHT / 2);
    surface.fillStyle = HATCH;
    surface.title(segmentWords(segment));
    surface.fillRect(left, top, width, STRIP_HEIGHT);
    paintPieces(surface, segmentPieces(segment, rows, scale), false, left, top);
    surface.strokeStyle = colors.line;
    surface.strokeRect(left, top, width, STRIP_HEIGHT);
    surface.fillStyle = colors.ink;
    surface.fillText(segmentWords(segment), left + STRIPS + GAP, top + STRIP_HEIGHT / 2);
  });
  return {
    width: left + STRIPS + GAP + WORDS,
    height: segments.length * LINE,
    shapes: [hatchDefinition(colors.line), ...surface.shapes],
  };
}
