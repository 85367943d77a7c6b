import { useMemo, useRef } from "preact/hooks";
import { onPress } from "../../base/input";
import { byteTicks } from "../../layout/axis";
import { fitFront, type FrontPoint } from "../../layout/fit/front";
import { rateText, reservedText } from "../../payload/responses/fit";
import { inFullWindow, useFullWindow } from "../browser/full_window";
import { useWidth } from "../browser/hooks";
import { SaveDrawing } from "../drawing/save_picture";
import { candidateName, candidateSentence, type SectionProps } from "./candidate";
import { drawFit, FitKey, Mark } from "./chart_key";

const HEIGHT = 260;
const LEFT = 76;
const RIGHT = 16;
const TOP = 18;
const BOTTOM = 40;
const LETTER = 6.5;
/** Names of lines that end further right than this share of the plot stand on their left. */
const NEAR_END = 0.85;
/** In the full window: what is around the chart. */
const AROUND = 220;

/** Memory of the candidates against their estimated rate, with the fastest ones of each target joined by a line. */
export const FrontSection = inFullWindow("chart of memory and time", FrontPicture);

function FrontPicture({ step, actions }: SectionProps) {
  const place = useRef<HTMLElement>(null);
  return (
    <section ref={place} class="fit-curve" aria-label="Memory against time" data-testid="fit-front">
      <header class="section-head">
        <h2>Memory against {step.item} per second, as estimated</h2>
        <span class="muted">joined: no other candidate of the target is as fast with less memory</span>
        <span class="spacer" />
        <SaveDrawing
          of="chart of memory and time"
          fileName="fit_front"
          place={place}
          draw={(drawing) => drawFit(drawing, [])}
        />
      </header>
      <Chart {...{ step, actions }} />
      <FitKey roles={[]} lines />
      <ul class="fit-plan" data-testid="fit-plan">
        {step.plan.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </section>
  );
}

function Chart({ step, actions }: SectionProps) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const { points, lines, limits, rates, max } = useMemo(() => fitFront(step), [step]);
  const height = useFullWindow() ? Math.max(window.innerHeight - AROUND, HEIGHT) : HEIGHT;
  const plot = { width: Math.max(width - LEFT - RIGHT, 1), height: height - TOP - BOTTOM };
  const x = (share: number): number => LEFT + share * plot.width;
  const y = (share: number): number => TOP + (1 - share) * plot.height;
  const end = TOP + plot.height;
  return (
    <div ref={place} class="fit-chart">
      <svg width={width} height={height} role="group" aria-label="Memory against estimated rate">
        {byteTicks([0, max.bytes], Math.max(Math.floor(plot.width / 90), 2)).map(({ value, label }) => (
          <g key={value} class="tick">
            <line x1={x(value / max.bytes)} x2={x(value / max.bytes)} y1={TOP} y2={end} />
            <text x={x(value / max.bytes)} y={end + 15} text-anchor="middle">
              {label}
            </text>
          </g>
        ))}
        {rates.map(({ value, label }) => (
          <g key={value} class="tick">
            <line x1={LEFT} x2={x(1)} y1={y(value / max.rate)} y2={y(value / max.rate)} />
            <text x={LEFT - 8} y={y(value / max.rate)} text-anchor="end" dominant-baseline="central">
              {label}
            </text>
          </g>
        ))}
        <text class="axis-name" x={LEFT} y={11}>{`${step.item}/s`}</text>
        <text class="axis-name" x={x(1)} y={height - 6} text-anchor="end">
          reserved
        </text>
        {limits.map(({ targets, share, bytes }) => (
          <g key={bytes} class="fit-limit">
            <line class="limit-mark" x1={x(share)} x2={x(share)} y1={TOP} y2={end} />
            <text x={x(share) - 4} y={end - 6} text-anchor="end">
              {shortened(`limit of ${targets.join(", ")}`, x(share) - LEFT)}
            </text>
          </g>
        ))}
        {lines.map(({ target, points: joined }, i) => (
          <g key={target}>
            <polyline
              class="line chosen"
              stroke-dasharray={i === 0 ? undefined : `${2 + 2 * i} 3`}
              points={joined.map((point) => `${x(point.x)},${y(point.y)}`).join(" ")}
            />
            <text
              class="line-name chosen"
              x={x(joined[joined.length - 1].x) + (joined[joined.length - 1].x < NEAR_END ? 9 : -9)}
              y={y(joined[joined.length - 1].y) - 9}
              text-anchor={joined[joined.length - 1].x < NEAR_END ? "start" : "end"}
            >
              {target}
            </text>
          </g>
        ))}
        {points.map((point) => (
          <Point key={point.candidate} {...{ step, actions, point }} x={x(point.x)} y={y(point.y)} />
        ))}
      </svg>
    </div>
  );
}

function shortened(text: string, room: number): string {
  const letters = Math.max(Math.floor(room / LETTER) - 1, 0);
  return text.length > letters ? `${text.slice(0, Math.max(letters - 1, 0))}…` : text;
}

interface PointProps extends SectionProps {
  point: FrontPoint;
  x: number;
  y: number;
}

function Point({ step, actions, point, x, y }: PointProps) {
  const each = step.candidates[point.candidate];
  const rate = `about ${rateText(each.items_per_second)} ${step.item}/s`;
  const about = `${candidateName(step, each)}: ${rate}; ${candidateSentence(each)}`;
  return (
    <g
      class={each.on_front ? "point chosen pointing" : "point pointing"}
      role="button"
      tabindex={0}
      aria-label={`${about}. ${actions.isCompiled(each) ? "Open it" : "Details"}`}
      data-testid="fit-front-point"
      data-reserved={reservedText(each.reserved_bytes ?? 0)}
      onClick={() => actions.open(each)}
      onKeyDown={onPress(() => actions.open(each))}
    >
      <title>{about}</title>
      <circle class="fit-reach" cx={x} cy={y} r={9} />
      <Mark x={x} y={y} state={point.state} />
    </g>
  );
}
