import { useMemo, useRef, useState } from "preact/hooks";
import { onPress } from "../../base/input";
import { nearestMark } from "../../layout/axis";
import { type FitChart, fitChart, type FitPoint } from "../../layout/fit/chart";
import type { FitStep } from "../../payload/generated/answers";
import { ROLES } from "../../payload/generated/constants";
import { choiceKey, choiceNamer, reservedText } from "../../payload/responses/fit";
import { FullWindow, useFullWindow } from "../browser/full_window";
import { useWidth } from "../browser/hooks";
import { ByteAxis } from "../drawing/byte_axis";
import { SaveDrawing } from "../drawing/save_picture";
import { store } from "../state/view_state";
import { Tooltip } from "../widgets/tooltip";
import { candidateName, candidateSentence, CandidateTooltip, type SectionProps } from "./candidate";
import { bandColors, ChoicePicker, drawFit, FitKey, Mark } from "./chart_key";

const HEIGHT = 340;
/** Height around the chart in the full window. */
const AROUND = 40;
const LEFT = 76;
const TOP = 22;
const BOTTOM = 40;
const NARROW = 640;
const MAX_LABEL = 26;
const CHARACTER = 6.6;
/** Labels of lines are not drawn closer than this. */
const LABEL_HEIGHT = 14;
const MAX_LABELS = 10;
const REACH = 28;

/** Reserved memory along the searched knob, a line for each choice, with the peak of one of them by role. */
export function CurveSection({ step, choice, actions }: SectionProps & { choice: number }) {
  const place = useRef<HTMLElement>(null);
  const chart = useMemo(() => fitChart(step, choice), [step, choice]);
  const named = useMemo(() => choiceNamer(step), [step]);
  const roles = chart.bands.map(({ role }) => role);
  const pick = (picked: number): void => store.set({ fit_choice: choiceKey(step.choices[picked]) });
  return (
    <section ref={place} class="fit-curve" aria-label="Memory of the candidates" data-testid="fit-curve">
      <header class="section-head">
        <h2>Reserved memory by {step.searched}</h2>
        {step.choices.length > 1 && (
          <span class="muted">
            peak by role: <b>{named(step.choices[choice])}</b>
          </span>
        )}
        <span class="spacer" />
        <SaveDrawing
          of="fit chart"
          fileName={`fit-${step.searched}`}
          place={place}
          draw={(drawing) => drawFit(drawing, roles)}
        />
      </header>
      {step.choices.length > 1 && <ChoicePicker {...{ step, choice }} onPick={pick} />}
      <FullWindow of="curve">
        <Curve {...{ chart, step, choice, actions, named }} onChoice={pick} />
      </FullWindow>
      <FitKey roles={roles} lines />
      {step.choices[choice].sentences.map((sentence) => (
        <p key={sentence} class="muted fit-sentence">
          {sentence}
        </p>
      ))}
    </section>
  );
}

interface CurveProps extends SectionProps {
  chart: FitChart;
  choice: number;
  named: (choice: FitStep["choices"][number]) => string;
  onChoice: (choice: number) => void;
}

function Curve({ chart, step, choice, actions, named, onChoice }: CurveProps) {
  const height = useFullWindow() ? window.innerHeight - AROUND : HEIGHT;
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const [pointed, setPointed] = useState<FitPoint | null>(null);
  const [focused, setFocused] = useState<number | null>(null);
  const labels = width > NARROW && step.choices.length > 1 && step.choices.length <= MAX_LABELS;
  const longest = Math.max(...step.choices.map((each) => named(each).length));
  const right = labels ? Math.min(longest, MAX_LABEL) * CHARACTER + 24 : 16;
  const plot = { width: Math.max(width - LEFT - right, 1), height: height - TOP - BOTTOM };
  const x = (share: number): number => LEFT + share * plot.width;
  const y = (share: number): number => TOP + (1 - Math.min(share, 1)) * plot.height;
  const points = chart.lines.flat();
  const stop =
    points.find(({ candidate }) => candidate === focused) ?? chart.lines[choice].at(0) ?? points.at(0);
  const order = chart.lines.map((_, i) => i).sort((a, b) => Number(a === choice) - Number(b === choice));
  const near = (event: MouseEvent & { currentTarget: SVGSVGElement }): FitPoint | null => {
    const box = event.currentTarget.getBoundingClientRect();
    const at = { x: event.clientX - box.left - LEFT, y: event.clientY - box.top - TOP };
    return nearestMark([chart.lines[choice], ...chart.lines].flat(), at, plot, REACH);
  };
  const tooltip = pointed === null ? null : step.candidates[pointed.candidate];
  return (
    <div ref={place} class="fit-chart" data-testid="fit-chart">
      <svg
        width={width}
        height={height}
        role="group"
        aria-label={`Memory that each candidate reserves, by ${step.searched}`}
        class={pointed === null ? "" : "pointing"}
        onMouseMove={(event) => setPointed(near(event))}
        onMouseLeave={() => setPointed(null)}
        onClick={(event) => {
          const found = near(event);
          if (found !== null) actions.open(step.candidates[found.candidate]);
        }}
        onKeyDown={(event) => {
          const next = stop === undefined ? null : pointAt(chart, step, stop, event.key);
          if (next === null) return;
          event.preventDefault();
          setFocused(next.candidate);
          onChoice(step.candidates[next.candidate].choice);
          event.currentTarget.querySelector<SVGElement>(`[data-candidate="${next.candidate}"]`)?.focus();
        }}
      >
        <Axes {...{ chart, plot, x, y, width, right }} label={step.searched} />
        <svg x={LEFT} y={TOP} width={plot.width} height={plot.height}>
          {chart.bands.map((band) => (
            <path
              key={band.role}
              class="fit-band"
              style={bandColors(band.role)}
              d={area(band.x, band.bottom, band.top, plot)}
            >
              <title>{ROLES[band.role]}</title>
            </path>
          ))}
          {order.map((line) => (
            <polyline
              key={line}
              class={line === choice ? "line chosen" : "line"}
              points={pathOf(chart.lines[line], plot)}
            />
          ))}
        </svg>
        {chart.limits.map((limit) => (
          <Limit key={limit.bytes} {...{ limit, x, y }} many={chart.limits.length > 1} />
        ))}
        {/* In a fixed order: an element that moves loses the focus. */}
        {chart.lines.map((line, number) =>
          line.map((point) => {
            const candidate = step.candidates[point.candidate];
            const name = `${candidateName(step, candidate)}: ${candidateSentence(candidate)}`;
            return (
              <g
                key={point.candidate}
                class={`point ${number === choice ? "chosen" : ""} ${point === pointed ? "pointed" : ""}`}
                role="button"
                tabindex={point === stop ? 0 : -1}
                aria-label={`${name}. ${actions.isCompiled(candidate) ? "Open it" : "Details"}`}
                data-testid="fit-point"
                data-candidate={point.candidate}
                onFocus={() => setFocused(point.candidate)}
                onKeyDown={onPress(() => actions.open(candidate))}
              >
                <Mark
                  x={x(point.x)}
                  y={y(point.y)}
                  state={point.state}
                  above={point.above}
                  small={step.choices.length > MAX_LABELS && number !== choice}
                />
              </g>
            );
          }),
        )}
        <g aria-hidden="true" class="over">
          {chart.lines[choice].map((point) => (
            <g key={point.candidate} class={point === pointed ? "point chosen pointed" : "point chosen"}>
              <Mark x={x(point.x)} y={y(point.y)} state={point.state} above={point.above} />
            </g>
          ))}
        </g>
        {labels && <LineLabels {...{ chart, step, choice, named, y, x: width - right + 10 }} />}
      </svg>
      {pointed !== null && tooltip !== null && (
        <Tooltip x={x(pointed.x)} y={y(pointed.y)} width={width}>
          <CandidateTooltip step={step} candidate={tooltip} opens={actions.isCompiled(tooltip)} />
        </Tooltip>
      )}
    </div>
  );
}

/** Arrow keys go along a line, and to the nearest value of the line of another choice. */
function pointAt(chart: FitChart, step: FitStep, from: FitPoint, key: string): FitPoint | null {
  const line = step.candidates[from.candidate].choice;
  const own = chart.lines[line];
  const at = own.indexOf(from);
  const along = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: own.length - 1 }[key];
  if (along !== undefined) return own[along] ?? null;
  const by = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (by === undefined) return null;
  for (let other = line + by; other in chart.lines; other += by) {
    const nearest = chart.lines[other]
      .slice()
      .sort((a, b) => Math.abs(a.x - from.x) - Math.abs(b.x - from.x))
      .at(0);
    if (nearest !== undefined) return nearest;
  }
  return null;
}

interface Plot {
  width: number;
  height: number;
}

function pathOf(line: readonly FitPoint[], plot: Plot): string {
  return line
    .filter(({ state }) => state !== "failed")
    .map((point) => `${point.x * plot.width},${(1 - point.y) * plot.height}`)
    .join(" ");
}

function area(x: readonly number[], bottom: readonly number[], top: readonly number[], plot: Plot): string {
  const at = (i: number, share: number): string => `${x[i] * plot.width},${(1 - share) * plot.height}`;
  const upper = top.map((share, i) => at(i, share));
  const lower = bottom.map((share, i) => at(i, share)).reverse();
  return `M${[...upper, ...lower].join(" L")} Z`;
}

interface AxesProps {
  chart: FitChart;
  plot: Plot;
  x: (share: number) => number;
  y: (share: number) => number;
  width: number;
  right: number;
  label: string;
}

function Axes({ chart, plot, x, y, width, right, label }: AxesProps) {
  const [low, high] = chart.span;
  const most = Math.max(Math.floor(plot.width / 56), 2);
  const every = Math.ceil(chart.values.length / most);
  return (
    <>
      <ByteAxis ticks={chart.bytes} left={LEFT} right={width - right} y={(bytes) => y(bytes / chart.max)} />
      {chart.values
        .filter((_, i) => i % every === 0)
        .map(({ value, label: text }) => (
          <g key={value} class="tick">
            <line
              x1={x((value - low) / (high - low))}
              x2={x((value - low) / (high - low))}
              y1={TOP + plot.height}
              y2={TOP + plot.height + 4}
            />
            <text x={x((value - low) / (high - low))} y={TOP + plot.height + 17} text-anchor="middle">
              {text}
            </text>
          </g>
        ))}
      <text
        class="axis-name"
        x={LEFT + plot.width / 2}
        y={TOP + plot.height + BOTTOM - 6}
        text-anchor="middle"
      >
        {label}
      </text>
    </>
  );
}

function Limit(props: {
  limit: FitChart["limits"][number];
  x: (share: number) => number;
  y: (share: number) => number;
  many: boolean;
}) {
  const { limit, x, y } = props;
  const text = `${limit.targets.join(", ")}: limit ${reservedText(limit.bytes)}`;
  const at = limit.y === null ? TOP : y(limit.y);
  return (
    <g class="limit" data-testid="fit-limit">
      {limit.y !== null && <line x1={x(0)} x2={x(1)} y1={at} y2={at} />}
      <text x={x(0) + 6} y={at - 5}>
        {limit.y === null ? `↑ ${text}` : text}
      </text>
    </g>
  );
}

/** Names at the ends of the lines, moved apart where they would overlap. */
function LineLabels(props: {
  chart: FitChart;
  step: FitStep;
  choice: number;
  named: CurveProps["named"];
  x: number;
  y: (share: number) => number;
}) {
  const { chart, step, choice, named, x, y } = props;
  const ends = chart.lines
    .flatMap((line, i) => {
      const last = line.findLast(({ state }) => state !== "failed");
      return last === undefined ? [] : [{ line: i, at: y(last.y) }];
    })
    .sort((a, b) => a.at - b.at);
  let free = -Infinity;
  return (
    <>
      {ends.map(({ line, at }) => {
        free = Math.max(at, free + LABEL_HEIGHT);
        const text = named(step.choices[line]);
        return (
          <text
            key={line}
            class={line === choice ? "line-name chosen" : "line-name"}
            x={x}
            y={free}
            dominant-baseline="middle"
          >
            <title>{text}</title>
            {text.length > MAX_LABEL ? `${text.slice(0, MAX_LABEL - 1)}…` : text}
          </text>
        );
      })}
    </>
  );
}
