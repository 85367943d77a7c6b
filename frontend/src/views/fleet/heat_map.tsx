import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCounted } from "../../base/units";
import {
  cellAt,
  cellBeside,
  hasCapacity,
  type HeatMap,
  heatMap,
  type ShadeBy,
  type Shades,
  shadesOf,
  shortNames,
} from "../../layout/fleet/heat_map";
import { deviceName, distanceText, type Fleet, growthText, peakText } from "../../payload/responses/fleet";
import { inFullWindow, useFullWindow } from "../browser/full_window";
import { useWidth } from "../browser/hooks";
import { withLightTheme } from "../drawing/picture";
import { SavePicture } from "../drawing/save_picture";
import { pageColors } from "../drawing/surface";
import { useDark } from "../state/theme";
import { store, useViewState } from "../state/view_state";
import { Choice } from "../widgets/choice";
import { Tooltip } from "../widgets/tooltip";
import {
  drawHeatMap,
  gradient,
  heatMarks,
  type HeatPicture,
  MARKS,
  MIN_PITCH_WITH_GAP,
  paintHeatMap,
  STATE_NAMES,
} from "./heat_map_drawing";
import type { DevicesProps } from "./section";

/** What the colors and outlines of cells stand for; outlines that do not occur are left out. */
function HeatLegend({ shades, fleet }: { shades: Shades; fleet: Fleet }) {
  const dark = useDark();
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
          {MARKS[mark].name}
        </li>
      ))}
    </ul>
  );
}

const CHARACTER = 6.4;
const MIN_GUTTER = 24;
const MAX_GUTTER = 150;
/** In the full window: heading and legend, and the largest cell, in CSS pixels. */
const AROUND = 110;
const LARGE_PITCH = 64;

const COLORS: readonly { value: ShadeBy; label: string; about: string }[] = [
  { value: "median", label: "Distance from median", about: "Color by the distance from the median device" },
  { value: "capacity", label: "Share of capacity", about: "Color by the share of the capacity at the peak" },
];

/** A cell for each device, hosts in numeric order, in the colors of their peaks. */
export const HeatMapSection = inFullWindow("heat map", HeatMapPicture);

function HeatMapPicture(props: DevicesProps) {
  const { fleet, rows, found, dimmed } = props;
  const dark = useDark();
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const wanted = useViewState((state) => state.fleet_color);
  const known = useMemo(() => hasCapacity(fleet.devices, rows), [fleet, rows]);
  const by = known ? wanted : "median";
  const names = useMemo(() => shortNames(fleet.hosts.map(({ host }) => host)), [fleet]);
  const gutter = gutterOf(names, width);
  const full = useFullWindow();
  const map = useMemo(() => {
    const most = full ? { height: window.innerHeight - AROUND, pitch: LARGE_PITCH } : undefined;
    return heatMap(fleet.hosts, fleet.devices, rows, width, gutter, most);
  }, [fleet, rows, width, gutter, full]);
  const shades = useMemo(
    () => shadesOf(fleet.devices, rows, found.median_bytes, by),
    [fleet, rows, found, by],
  );
  const picture: HeatPicture = { map, fleet, shades, dimmed, names, gutter, dark };
  return (
    <section aria-label="Peak of each device" data-testid="fleet-heat">
      <header class="section-head">
        <h2>Peak of each device</h2>
        {known && (
          <Choice
            label="Colors"
            testid="fleet-color"
            options={COLORS}
            value={by}
            onPick={(value) => store.set({ fleet_color: value })}
          />
        )}
        <span class="spacer" />
        <SavePicture
          of="heat map"
          fileName="fleet"
          draw={() => withLightTheme(document.body, (holder) => drawHeatMap(picture, pageColors(holder)))}
        />
      </header>
      <div ref={place} class="fleet-heat">
        {width > 0 && <Cells {...props} picture={picture} />}
      </div>
      <HeatLegend {...{ shades, fleet }} />
    </section>
  );
}

/** Return the width of the names on the left. */
function gutterOf(names: readonly string[], width: number): number {
  const longest = names.reduce((most, { length }) => Math.max(most, length), 0);
  return Math.min(Math.max(longest * CHARACTER + 10, MIN_GUTTER), Math.min(MAX_GUTTER, width / 4));
}

/** The cells. A click or Enter opens a device, and arrow keys go from one to the next. */
function Cells({ picture, ...props }: DevicesProps & { picture: HeatPicture }) {
  const { fleet, found, selected, open } = props;
  const { map, shades, dimmed, dark } = picture;
  const { devices, hosts } = fleet;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointed, setPointed] = useState(-1);
  const [focused, setFocused] = useState(-1);
  const [isFocused, setIsFocused] = useState(false);
  useLayoutEffect(() => {
    if (canvas.current !== null) paintHeatMap(canvas.current, picture);
  }, [map, shades, dimmed, dark]);
  // The cells may be elsewhere in another picture.
  useLayoutEffect(() => {
    setPointed(-1);
    setFocused(-1);
  }, [map]);

  const chosen = selected < 0 ? -1 : map.device.indexOf(selected);
  const current = focused >= 0 ? focused : Math.max(chosen, 0);
  const shown = pointed >= 0 ? pointed : isFocused ? current : -1;
  const go = (cell: number): void => {
    setFocused(cell);
    const row = map.device[cell];
    if (row >= 0) store.set({ fleet_device: devices.id[row] });
  };
  const press = (cell: number): void => {
    if (cell >= 0 && map.device[cell] >= 0) open(map.device[cell]);
  };
  const at = (event: MouseEvent): number => cellAt(map, event.offsetX, event.offsetY);
  const lines = (cell: number): string[] => {
    const row = map.device[cell];
    const { host, state, problem } = hosts[map.host[cell]];
    if (row < 0) return [host, state === "read" ? `no ${props.memory}` : STATE_NAMES[state], problem];
    const cause = devices.cause[row] === "" ? "" : `because: ${devices.cause[row]}`;
    const growth = growthText(devices, row);
    return [
      deviceName(devices, row),
      peakText(devices, row),
      distanceText(devices, row, found),
      cause,
      growth === "" ? "" : `growth: ${growth}`,
    ];
  };
  return (
    <div
      class="fleet-cells"
      role="listbox"
      tabindex={0}
      aria-label={`Devices of ${formatCounted(hosts.length, "host")}. Arrows move, Enter opens the device.`}
      aria-activedescendant="fleet-cell"
      data-testid="fleet-cells"
      onFocus={() => setIsFocused(true)}
      onBlur={() => setIsFocused(false)}
      onKeyDown={(event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const to = cellBeside(map, current, event.key);
        if (to !== null) go(to);
        else if (event.key === "Enter") press(current);
        else return;
        event.preventDefault();
      }}
    >
      <canvas
        ref={canvas}
        style={{ width: `${map.width}px`, height: `${map.height}px` }}
        data-over={pointed >= 0 && map.device[pointed] >= 0 ? "device" : undefined}
        onMouseMove={(event) => setPointed(at(event))}
        onMouseLeave={() => setPointed(-1)}
        onClick={(event) => press(at(event))}
      />
      {chosen >= 0 && <Frame map={map} cell={chosen} kind="selected" />}
      {map.count > 0 && <Frame map={map} cell={current} kind="focused" />}
      {pointed >= 0 && <Frame map={map} cell={pointed} kind="hovered" />}
      {map.count > 0 && (
        <div
          id="fleet-cell"
          class="read-out"
          role="option"
          aria-selected="true"
          aria-setsize={map.count}
          aria-posinset={current + 1}
          aria-label={lines(current).filter(Boolean).join(", ")}
        />
      )}
      {shown >= 0 && (
        <Tooltip x={map.left[shown] + map.wide[shown]} y={map.top[shown] + map.pitch + 4} width={map.width}>
          {lines(shown)
            .filter(Boolean)
            .map((line, i) => (i === 0 ? <b key={line}>{line}</b> : <span key={line}>{line}</span>))}
          {map.device[shown] >= 0 && (
            <span class="muted">{pointed >= 0 ? "Click opens it" : "Enter opens it"}</span>
          )}
        </Tooltip>
      )}
    </div>
  );
}

function Frame({ map, cell, kind }: { map: HeatMap; cell: number; kind: string }) {
  const gap = map.pitch >= MIN_PITCH_WITH_GAP ? 1 : 0;
  const style = {
    transform: `translate(${map.left[cell]}px, ${map.top[cell]}px)`,
    width: `${map.wide[cell] - gap}px`,
    height: `${map.pitch - gap}px`,
  };
  return <i class={`box-frame ${kind}`} style={style} />;
}
