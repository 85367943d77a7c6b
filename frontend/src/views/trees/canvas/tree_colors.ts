import { cssColor, roleColors } from "../../../base/colors";
import { mixPixels } from "../../../render/frame/palette";

/** Colors of a tree as 0xRRGGBB. */
export interface TreeColors {
  surface: number;
  role: (role: number) => number;
  framework: number;
  /** Alternating shares of the background in adjacent boxes of one color. */
  tints: readonly number[];
  /** Share of the background in a box that does not match the search. */
  dimmed: number;
  /** Share of the background in a box with children, so that the children stand out. */
  around: number;
  /** Spacing of the hatching over nodes that are too small to draw. */
  hatch: string;
}

/** Return the colors of the page. Without roles, all boxes have one color that stands for no role. */
export function readTreeColors(dark: boolean, roles: boolean, page = document.documentElement): TreeColors {
  const style = getComputedStyle(page);
  const read = (name: string, otherwise: number): number => {
    const value = style.getPropertyValue(name).trim();
    return /^#[0-9a-f]{6}$/i.test(value) ? Number.parseInt(value.slice(1), 16) : otherwise;
  };
  const surface = read("--surface", dark ? 0x1a1d21 : 0xffffff);
  const muted = read("--muted", 0x808080);
  const plain = mixColors(read("--accent", 0x2f6fb3), surface, 0.32);
  const colors = roleColors(dark);
  return {
    surface,
    role: (role) => (roles ? (colors[role] ?? muted) : plain),
    framework: mixColors(muted, surface, 0.55),
    tints: [0, 0.16, 0.08, 0.24],
    dimmed: 0.8,
    around: 0.6,
    hatch: cssColor(mixColors(muted, surface, 0.45)),
  };
}

/** Mix `from` with a share of `to`. */
export function mixColors(from: number, to: number, share: number): number {
  return mixPixels(from, to, share) & 0xffffff;
}

/** Return a canvas pattern of hatching. */
export function hatchPattern(context: CanvasRenderingContext2D, color: string): CanvasPattern | string {
  const tile = new OffscreenCanvas(6, 6);
  const lines = tile.getContext("2d");
  if (lines === null) return color;
  lines.strokeStyle = color;
  for (const shift of [-6, 0, 6]) {
    lines.moveTo(shift - 1, 7);
    lines.lineTo(shift + 7, -1);
  }
  lines.stroke();
  return context.createPattern(tile, "repeat") ?? color;
}
