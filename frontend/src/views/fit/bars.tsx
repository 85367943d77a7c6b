import { useMemo, useRef } from "preact/hooks";
import { onPress } from "../../base/input";
import { formatBytes, formatCount, formatLeft } from "../../base/units";
import { byteTicks } from "../../layout/axis";
import { highest, stackedRoles } from "../../layout/fit/chart";
import type { FitCandidate, FitStep } from "../../payload/generated/answers";
import { ROLES } from "../../payload/generated/constants";
import { choiceNamer, leftOf, reservedText, stateOf } from "../../payload/responses/fit";
import { inFullWindow, useFullWindow } from "../browser/full_window";
import { useWidth } from "../browser/hooks";
import { SaveDrawing } from "../drawing/save_picture";
import { candidateName, candidateSentence, type SectionProps } from "./candidate";
import { bandColors, drawFit, FitKey } from "./chart_key";

const ROW = 26;
/** Of a row. */
const BAR_SHARE = 16 / 26;
/** In the full window: the highest row, and what is above and below the bars. */
const HIGH_ROW = 60;
const AROUND = 130;
const TOP = 6;
const BOTTOM = 26;
const MAX_BARS = 40;
/** A bar shows how full the device is: limits are off the chart only where the bars would be too short to read. */
const MAX_EMPTY = 20;
const CHARACTER = 6.9;
const NOTE = 150;

/** Bars of the candidates, with the peak by role, what is reserved, and the limit of the target. */
export const BarsSection = inFullWindow("chart of candidates", BarsPicture);

function BarsPicture({ step, actions }: SectionProps) {
  const place = useRef<HTMLElement>(null);
  const shown = step.candidates.slice(0, MAX_BARS);
  const roles = useMemo(
    () =>
      stackedRoles([
        ...new Map(shown.flatMap((each) => each.roles).map((role) => [role.role, role])).values(),
      ]),
    [step],
  ).map(({ role }) => role);
  return (
    <section ref={place} class="fit-curve" aria-label="Memory of the candidates" data-testid="fit-bars">
      <header class="section-head">
        <h2>Peak by role, and reserved memory</h2>
        {shown.length < step.candidates.length && (
          <span class="muted">
            the first {formatCount(shown.length)} of {formatCount(step.candidates.length)}
          </span>
        )}
        <span class="spacer" />
        <SaveDrawing
          of="fit chart"
          fileName="fit"
          place={place}
          draw={(drawing) => drawFit(drawing, roles)}
        />
      </header>
      <Bars {...{ step, shown, actions }} />
      <FitKey roles={roles} lines={false} />
    </section>
  );
}

interface BarsProps extends Pick<SectionProps, "step" | "actions"> {
  shown: readonly FitCandidate[];
}

function Bars({ step, shown, actions }: BarsProps) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const named = useMemo(() => choiceNamer(step), [step]);
  const names = shown.map((each) => barName(step, each, named));
  const left = Math.min(
    Math.max(...names.map(({ length }) => length * CHARACTER), 60) + 10,
    width * 0.35,
    260,
  );
  const max = highest(shown, MAX_EMPTY);
  const plot = Math.max(width - left - NOTE, 1);
  const x = (bytes: number): number => left + (Math.min(bytes, max) / max) * plot;
  const room = (window.innerHeight - AROUND) / shown.length;
  const row = useFullWindow() ? Math.max(Math.min(Math.floor(room), HIGH_ROW), ROW) : ROW;
  const height = TOP + shown.length * row + BOTTOM;
  const letters = Math.max(Math.floor(left / CHARACTER) - 1, 3);
  return (
    <div ref={place} class="fit-chart" data-testid="fit-chart">
      <svg width={width} height={height} role="group" aria-label="Memory of each candidate">
        {byteTicks([0, max], Math.max(Math.floor(plot / 90), 2)).map(({ value, label }) => (
          <g key={value} class="tick">
            <line x1={x(value)} x2={x(value)} y1={TOP} y2={height - BOTTOM} />
            <text x={x(value)} y={height - 9} text-anchor="middle">
              {label}
            </text>
          </g>
        ))}
        {shown.map((each, i) => (
          <Bar
            key={each.run}
            {...{ step, each, x, max, left, right: width - 4, actions }}
            row={row}
            above={TOP + i * row}
            name={names[i].length > letters ? `${names[i].slice(0, letters - 1)}…` : names[i]}
          />
        ))}
      </svg>
    </div>
  );
}

function barName(step: FitStep, each: FitCandidate, named: (choice: FitCandidate) => string): string {
  const choice = named(each);
  return step.searched === "" ? choice : `${step.searched}=${String(each.value)}, ${choice}`;
}

interface BarProps extends Pick<SectionProps, "step" | "actions"> {
  each: FitCandidate;
  name: string;
  x: (bytes: number) => number;
  /** Bytes at the right end of the chart. */
  max: number;
  left: number;
  right: number;
  above: number;
  /** Height with the space around the bar. */
  row: number;
}

function Bar({ step, each, name, x, max, left, right, above, row, actions }: BarProps) {
  const state = stateOf(each);
  const middle = above + row / 2;
  const bar = row * BAR_SHARE;
  const stacked = stackedRoles(each.roles);
  let bottom = 0;
  const about = `${candidateName(step, each)}: ${candidateSentence(each)}`;
  const reserved = each.reserved_bytes;
  const bad = state === "refused" || state === "failed";
  return (
    <g
      class={`bar ${state}`}
      role="button"
      tabindex={0}
      aria-label={`${about}. ${actions.isCompiled(each) ? "Open it" : "Details"}`}
      data-testid="fit-bar"
      onClick={() => actions.open(each)}
      onKeyDown={onPress(() => actions.open(each))}
    >
      <title>{about}</title>
      <rect class="row" x={0} y={above} width={Math.max(right, 0)} height={row} />
      <text x={left - 8} y={middle} text-anchor="end" dominant-baseline="central">
        {name}
      </text>
      {stacked.map(({ role, bytes }) => {
        const from = bottom;
        bottom += bytes;
        return (
          <rect
            key={role}
            class="fit-band"
            style={bandColors(role)}
            x={x(from)}
            y={middle - bar / 2}
            width={x(bottom) - x(from)}
            height={bar}
          >
            <title>{`${ROLES[role]}: ${formatBytes(bytes)}`}</title>
          </rect>
        );
      })}
      {reserved !== null && (
        <rect
          class="reserved"
          x={x(0)}
          y={middle - bar / 2}
          width={Math.max(x(reserved) - x(0), 1)}
          height={bar}
        />
      )}
      {each.limit_bytes !== null && each.limit_bytes <= max && (
        <line
          class="limit-mark"
          x1={x(each.limit_bytes)}
          x2={x(each.limit_bytes)}
          y1={middle - bar / 2 - 4}
          y2={middle + bar / 2 + 4}
        >
          <title>{`${each.target}: limit ${reservedText(each.limit_bytes)}`}</title>
        </line>
      )}
      <text
        class={bad ? "note fit-bad" : "note"}
        x={reserved === null ? left + 6 : right}
        y={middle}
        text-anchor={reserved === null ? "start" : "end"}
        dominant-baseline="central"
      >
        {noteOf(each)}
      </text>
    </g>
  );
}

const MAX_ERROR = 90;

function noteOf(each: FitCandidate): string {
  const { reserved_bytes: reserved, error } = each;
  if (reserved === null) return (error ?? "No program").split("\n")[0].slice(0, MAX_ERROR);
  const left = leftOf(each);
  return left === null
    ? reservedText(reserved)
    : `${reservedText(reserved)}, ${formatLeft(left)}${left < 0 ? "" : " left"}`;
}
