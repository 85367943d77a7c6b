import type { JSX } from "preact";
import type { Shades } from "../../layout/fleet/shades";
import type { Fleet } from "../../payload/responses/fleet";
import { gradient } from "./heat_colors";

interface Props {
  shades: Shades;
  fleet: Fleet;
  rows: Uint32Array;
  dark: boolean;
}

/** What the colors and outlines of cells stand for; outlines that do not occur are left out. */
export function HeatLegend({ shades, fleet, rows, dark }: Props): JSX.Element {
  const states = new Set<string>(fleet.hosts.map(({ state }) => state));
  const outliers = rows.some((row) => fleet.devices.outlier[row] === 1);
  const marks = [
    outliers && "outlier",
    states.has("missing") && "missing",
    states.has("unreadable") && "unreadable",
    states.has("waiting") && "waiting",
  ].filter((mark) => mark !== false);
  return (
    <ul class="fleet-legend" data-testid="fleet-legend">
      <li>
        <span>{shades.ticks[0].label}</span>
        <i class="fleet-ramp" style={{ background: gradient(dark, shades.from) }} />
        <span>{shades.ticks[shades.ticks.length - 1].label}</span>
        {shades.ticks.length > 2 && <span class="muted">from the median</span>}
        {shades.ticks.length === 2 && <span class="muted">of capacity</span>}
      </li>
      {marks.map((mark) => (
        <li key={mark}>
          <i class={`fleet-mark ${mark}`} />
          {NAMES[mark]}
        </li>
      ))}
    </ul>
  );
}

const NAMES: Record<string, string> = {
  outlier: "outlier",
  missing: "missing host",
  unreadable: "unreadable host",
  waiting: "not read yet",
};
