import { cssColor } from "../../base/colors";
import type { HeatMap, Shades } from "../../layout/fleet/heat_map";
import type { Fleet, HostState } from "../../payload/responses/fleet";
import type { Picture } from "../drawing/picture";
import {
  CHART_FONT,
  fitText,
  HATCH,
  hatchDefinition,
  type PageColors,
  pageColors,
  sizedContext,
  type Surface,
  SvgSurface,
} from "../drawing/surface";
import { hatchPattern, mixColors } from "../trees/paint";

/** Stops from far below the median to far above it: blue and vermillion, which all can tell apart, around gray. */
const STOPS = {
  light: [0x08519c, 0x6aa5d8, 0xd3dae2, 0xf3a25c, 0xb93600],
  dark: [0x8fccff, 0x3f7fb8, 0x39424e, 0xb8602a, 0xffa36b],
} as const;
const STEPS = 64;

/** Return the colors of shades from -1 to 1, equally spaced. */
function ramp(dark: boolean): string[] {
  const stops = dark ? STOPS.dark : STOPS.light;
  return Array.from({ length: 2 * STEPS + 1 }, (_, i) => {
    const at = (i / (2 * STEPS)) * (stops.length - 1);
    const left = Math.min(Math.floor(at), stops.length - 2);
    return cssColor(mixColors(stops[left], stops[left + 1], at - left));
  });
}

/** Return the function that gives a shade its color; an unknown shade has the one of the median. */
function shadeColors(dark: boolean): (shade: number) => string {
  const colors = ramp(dark);
  return (shade) => colors[Math.round(STEPS * (1 + Math.min(Math.max(shade || 0, -1), 1)))];
}

/** Return the colors from a shade on as a CSS gradient. */
export function gradient(dark: boolean, from: number): string {
  const colors = ramp(dark).slice(Math.round(STEPS * (1 + from)));
  return `linear-gradient(to right, ${colors.filter((_, i) => i % 8 === 0).join(", ")})`;
}

export interface HeatPicture {
  map: HeatMap;
  fleet: Fleet;
  shades: Shades;
  /** By row of the devices: 1 for those that the histogram's range leaves out. */
  dimmed: Uint8Array;
  /** Short names of the hosts. */
  names: readonly string[];
  gutter: number;
  dark: boolean;
}

const LABEL_HEIGHT = 13;
const LABEL_GAP = 8;
const DIMMED = 0.18;
/** Larger cells have a thicker outline. */
const THICK_FROM = 8;
/** Smallest distance of cells with a gap between them. */
export const MIN_PITCH_WITH_GAP = 4;

/** Texts of hosts without a device, in words. */
export const STATE_NAMES: Record<HostState, string> = {
  read: "no such memory",
  waiting: "not read yet",
  missing: "missing",
  unreadable: "unreadable",
};

/** How cells look that are no shade. */
type HeatMark = "outlier" | Exclude<HostState, "read">;

/** Names of the marks, and how they look. */
export const MARKS: Record<HeatMark, { name: string; look: string }> = {
  outlier: { name: "outlier", look: "outlined" },
  missing: { name: "missing host", look: "hatched" },
  unreadable: { name: "unreadable host", look: "outlined in red" },
  waiting: { name: "not read yet", look: "empty" },
};

/** Return the marks that occur in a picture. */
export function heatMarks({ devices, hosts }: Fleet): HeatMark[] {
  const states = new Set<string>(hosts.map(({ state }) => state));
  const marks = Object.keys(MARKS) as HeatMark[];
  return marks.filter((mark) => (mark === "outlier" ? devices.outlier.includes(1) : states.has(mark)));
}

/** Draw the cells on a canvas. */
export function paintHeatMap(canvas: HTMLCanvasElement, picture: HeatPicture): void {
  const context = sizedContext(canvas, picture.map.width, picture.map.height);
  if (context === null) return;
  const page = pageColors();
  paint(context, picture, page, hatchPattern(context, page.muted));
}

/** Draw the cells for a file, in the colors of the light theme. */
export function drawHeatMap(picture: HeatPicture, page: PageColors): Picture {
  const surface = new SvgSurface();
  paint(surface, { ...picture, dark: false }, page, HATCH);
  const color = shadeColors(false);
  const legend = [
    ...picture.shades.ticks.map(({ at, label }) => ({ color: color(at), label })),
    ...heatMarks(picture.fleet).map((mark) => ({
      color: "",
      label: `${MARKS[mark].look}: ${MARKS[mark].name}`,
    })),
  ];
  const { width, height } = picture.map;
  return { width, height, shapes: [hatchDefinition(page.muted), ...surface.shapes], legend };
}

function paint(
  surface: Surface,
  picture: HeatPicture,
  page: PageColors,
  hatch: CanvasPattern | string,
): void {
  paintNames(surface, picture, page);
  const { map, fleet, shades, dimmed } = picture;
  const colorOf = shadeColors(picture.dark);
  const gap = map.pitch >= MIN_PITCH_WITH_GAP ? 1 : 0;
  const side = map.pitch - gap;
  const outliers: number[] = [];
  let last = "";
  for (let cell = 0; cell < map.count; cell++) {
    const row = map.device[cell];
    if (row < 0) {
      const place = [map.left[cell], map.top[cell], map.wide[cell] - gap, side] as const;
      paintState(surface, fleet.hosts[map.host[cell]].state, place, page, hatch);
      last = "";
      continue;
    }
    const color = colorOf(shades.shade[row]);
    if (color !== last) surface.fillStyle = last = color;
    surface.globalAlpha = dimmed[row] === 1 ? DIMMED : 1;
    surface.fillRect(map.left[cell], map.top[cell], side, side);
    if (fleet.devices.outlier[row] === 1 && dimmed[row] === 0) outliers.push(cell);
  }
  surface.globalAlpha = 1;
  surface.strokeStyle = page.ink;
  surface.lineWidth = side > THICK_FROM ? 2 : 1;
  const inset = surface.lineWidth / 2;
  for (const cell of outliers)
    surface.strokeRect(
      map.left[cell] + inset - 0.5,
      map.top[cell] + inset - 0.5,
      side - 2 * inset + 1,
      side - 2 * inset + 1,
    );
}

/** Draw a host without a device: hatched if it is missing, outlined in red if its file cannot be read. */
function paintState(
  surface: Surface,
  state: HostState,
  [x, y, width, height]: readonly [number, number, number, number],
  page: PageColors,
  hatch: CanvasPattern | string,
): void {
  surface.globalAlpha = 1;
  if (state === "missing") {
    surface.fillStyle = hatch;
    surface.fillRect(x, y, width, height);
  }
  surface.strokeStyle = state === "unreadable" ? page.bad : state === "missing" ? page.muted : page.grid;
  surface.lineWidth = 1;
  surface.strokeRect(x + 0.5, y + 0.5, Math.max(width - 1, 1), Math.max(height - 1, 1));
}

/** Name the first host of as many lines as have room. */
function paintNames(surface: Surface, { map, names, gutter }: HeatPicture, page: PageColors): void {
  surface.font = CHART_FONT;
  surface.fillStyle = page.muted;
  let free = 0;
  for (const { host, top } of map.lines) {
    const middle = Math.max(top + map.pitch / 2, LABEL_HEIGHT / 2);
    if (middle - LABEL_HEIGHT / 2 < free) continue;
    surface.fillText(fitText(surface, names[host], gutter - LABEL_GAP), 0, middle);
    free = middle + LABEL_HEIGHT / 2;
  }
}
