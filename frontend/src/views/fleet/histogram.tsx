import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { formatBytes, formatCounted } from "../../base/units";
import { type Bar, histogram, rangeOf } from "../../layout/fleet/devices";
import { useWidth } from "../browser/hooks";
import { store, useViewState } from "../state/view_state";
import { Tooltip } from "../widgets/tooltip";
import type { DevicesProps } from "./section";

const HEIGHT = 132;
const TOP = 18;
const BOTTOM = 20;
const SIDE = 30;
/** Bars of a single device are visible beside one of thousands. */
const LEAST = 3;
const MAX_BAR_WIDTH = 48;
const LABEL =
  "Devices by peak. Arrows move, Enter lists the devices of a bar, Shift with an arrow adds the next one.";

/** How many devices have which peak. A click on a bar, or a drag over several, restricts the other charts to them. */
export function HistogramSection({ fleet, rows, found }: DevicesProps) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const chart = useMemo(() => histogram(fleet.devices, rows), [fleet, rows]);
  const range = useViewState((state) => state.fleet_peaks);
  const { bars, most } = chart;
  const low = bars[0]?.from ?? 0;
  const high = bars[bars.length - 1]?.to ?? 1;
  const span = Math.min(Math.max(width - 2 * SIDE, 1), bars.length * MAX_BAR_WIDTH);
  const x = (bytes: number): number => SIDE + ((bytes - low) / (high - low)) * span;
  return (
    <section aria-label="Distribution of peaks" data-testid="fleet-histogram">
      <header class="section-head">
        <h2>Distribution of peaks</h2>
        {range === null ? (
          <span class="muted">click a bar, or drag over several, to list their devices</span>
        ) : (
          <span class="fleet-range" data-testid="fleet-range">
            only {formatBytes(range[0], 4)} to {formatBytes(range[1], 4)}
            <button class="link" onClick={() => store.set({ fleet_peaks: null })}>
              all peaks
            </button>
          </span>
        )}
      </header>
      <div ref={place} class="fleet-histogram">
        {width > 0 && (
          <Bars {...{ bars, most, range, x }} width={width} onRange={(to) => store.set({ fleet_peaks: to })}>
            <line class="axis" x1={SIDE} x2={SIDE + span} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} />
            {chart.ticks.map(({ value, label }) => (
              <text key={value} x={x(value)} y={HEIGHT - 4} text-anchor="middle">
                {label}
              </text>
            ))}
            <g class="median">
              <line x1={x(found.median_bytes)} x2={x(found.median_bytes)} y1={TOP - 4} y2={HEIGHT - BOTTOM} />
              <text x={x(found.median_bytes) + 4} y={TOP - 6}>
                median
              </text>
            </g>
          </Bars>
        )}
      </div>
    </section>
  );
}

type Range = readonly [number, number];

interface BarsProps {
  bars: readonly Bar[];
  most: number;
  range: Range | null;
  x: (bytes: number) => number;
  width: number;
  onRange: (range: Range | null) => void;
  children: ComponentChildren;
}

function Bars({ bars, most, range, x, width, onRange, children }: BarsProps) {
  const [pointed, setPointed] = useState(-1);
  /** The bar where a drag, or a choice with Shift, began. */
  const start = useRef(-1);
  const [focused, setFocused] = useState(0);
  const isIn = ({ from, to }: Bar): boolean => range === null || (from >= range[0] && to <= range[1]);
  const isOnly = (one: number, other: number): boolean => {
    const [from, to] = rangeOf(bars, one, other);
    return range !== null && range[0] === from && range[1] === to;
  };
  const pick = (one: number, other: number): void =>
    onRange(one === other && isOnly(one, other) ? null : rangeOf(bars, one, other));
  const barAt = (event: PointerEvent & { currentTarget: SVGSVGElement }): number => {
    const at = event.clientX - event.currentTarget.getBoundingClientRect().left;
    return bars.findIndex(({ from, to }) => at >= x(from) && at < x(to));
  };
  const tooltip = bars.at(pointed);
  const plot = HEIGHT - TOP - BOTTOM;
  const stop = Math.min(focused, bars.length - 1);
  return (
    <>
      <svg
        width={width}
        height={HEIGHT}
        role="group"
        aria-label={LABEL}
        onPointerDown={(event) => {
          start.current = barAt(event);
          if (start.current >= 0) event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          const bar = barAt(event);
          setPointed(bar);
          if (event.buttons === 1 && start.current >= 0 && bar >= 0 && bar !== start.current)
            onRange(rangeOf(bars, start.current, bar));
        }}
        onPointerLeave={() => setPointed(-1)}
        onPointerUp={(event) => {
          const bar = barAt(event);
          if (start.current >= 0 && bar === start.current) pick(bar, bar);
          start.current = -1;
        }}
        onKeyDown={(event) => {
          const by = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
          if (by !== undefined) {
            const to = Math.min(Math.max(stop + by, 0), bars.length - 1);
            if (!event.shiftKey || start.current < 0) start.current = event.shiftKey ? stop : -1;
            if (event.shiftKey) onRange(rangeOf(bars, start.current, to));
            setFocused(to);
            event.currentTarget.querySelectorAll<SVGElement>(".bar")[to].focus();
          } else if (event.key === "Enter" || event.key === " ") pick(stop, stop);
          else return;
          event.preventDefault();
        }}
      >
        {bars.map((bar, i) => {
          const high = bar.count === 0 ? 0 : Math.max((bar.count / most) * plot, LEAST);
          const wide = Math.max(x(bar.to) - x(bar.from), 1);
          return (
            <g
              key={bar.from}
              class={`bar ${isIn(bar) ? "" : "out"} ${i === pointed ? "pointed" : ""}`}
              role="button"
              tabindex={i === stop ? 0 : -1}
              aria-pressed={range !== null && isIn(bar)}
              aria-label={barText(bar)}
              data-testid="fleet-bar"
              onFocus={() => setFocused(i)}
            >
              <rect class="room" x={x(bar.from)} y={TOP} width={wide} height={plot} />
              <rect
                class={bar.outliers > 0 ? "count outliers" : "count"}
                x={x(bar.from)}
                y={TOP + plot - high}
                width={Math.max(wide - 1, 1)}
                height={high}
              />
            </g>
          );
        })}
        {children}
      </svg>
      {pointed >= 0 && tooltip !== undefined && (
        <Tooltip x={x(tooltip.to)} y={TOP} width={width}>
          <b>{`${formatBytes(tooltip.from, 4)} to ${formatBytes(tooltip.to, 4)}`}</b>
          <span>{countText(tooltip)}</span>
        </Tooltip>
      )}
    </>
  );
}

function countText({ count, outliers }: Bar): string {
  const far = outliers > 0 ? `, ${formatCounted(outliers, "outlier")}` : "";
  return `${formatCounted(count, "device")}${far}`;
}

function barText(bar: Bar): string {
  return `${formatBytes(bar.from, 4)} to ${formatBytes(bar.to, 4)}: ${countText(bar)}`;
}
