import { cssColor, roleColors } from "../../../base/colors";
import { mixPixels } from "../../../render/frame/palette";

/** Colors of a tree as 0xRRGGBB. */
export interface TreeColors {
  surface: number;
  role: (role: number) => number;
  framework: number;
  /** Shares of the surface in boxes that are beside each other and of one color. */
  tints: readonly number[];
  /** Share of the surface in a box that a search does not find. */
  dimmed: number;
  /** Share of the surface in a box that others lie in, so that these stand out. */
  around: number;
  /** Of the lines across what is too small to be drawn. */
  hatch: string;
}

/** The page's colors. Where no row has a role, there is one color for all: a role's own would say what is not known. */
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

/** `from` with a share of `to`. */
export function mixColors(from: number, to: number, share: number): number {
  return mixPixels(from, to, share) & 0xffffff;
}

/** What a canvas fills with lines across. */
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
