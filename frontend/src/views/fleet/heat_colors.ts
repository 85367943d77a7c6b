import { cssColor } from "../../base/colors";
import { mixColors } from "../trees/paint";

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
export function shadeColors(dark: boolean): (shade: number) => string {
  const colors = ramp(dark);
  return (shade) => colors[Math.round(STEPS * (1 + Math.min(Math.max(shade || 0, -1), 1)))];
}

/** Return the colors from a shade on as a CSS gradient. */
export function gradient(dark: boolean, from: number): string {
  const colors = ramp(dark).slice(Math.round(STEPS * (1 + from)));
  return `linear-gradient(to right, ${colors.filter((_, i) => i % 8 === 0).join(", ")})`;
}
