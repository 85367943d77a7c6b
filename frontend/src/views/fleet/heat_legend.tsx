import type { JSX } from "preact";
import type { Shades } from "../../layout/fleet/shades";
import type { Fleet } from "../../payload/responses/fleet";
import { gradient } from "./heat_colors";
import { heatMarks, MARK_NAMES } from "./heat_map_drawing";

interface Props {
  shades: Shades;
  fleet: Fleet;
  dark: boolean;
}

/** What the colors and outlines of cells stand for; outlines that do not occur are left out. */
export function HeatLegend({ shades, fleet, dark }: Props): JSX.Element {
  return (
    <ul class="fleet-legend" data-testid="fleet-legend">
      <li>
        <span>{shades.ticks[0].label}</span>
        <i class="fleet-ramp" style={{ background: gradient(dark, shades.from) }} />
        <span>{shades.ticks[shades.ticks.length - 1].label}</span>
        {shades.ticks.length > 2 && <span class="muted">from the median</span>}
        {shades.ticks.length === 2 && <span class="muted">of capacity</span>}
      </li>
      {heatMarks(fleet).map((mark) => (
        <li key={mark}>
          <i class={`fleet-mark ${mark}`} />
          {MARK_NAMES[mark]}
        </li>
      ))}
    </ul>
  );
}
