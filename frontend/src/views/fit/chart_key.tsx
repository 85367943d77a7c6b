import { cssColor, roleColors } from "../../base/colors";
import type { FitStep } from "../../payload/generated/answers";
import { type CandidateState, choiceKey, choiceNamer, largestText } from "../../payload/responses/fit";
import { copySvg, type Picture, roleLegend } from "../drawing/picture";
import { Role } from "../widgets/labels";

/** Colors of a role for both themes: a saved picture has the light one. */
export function bandColors(role: number): Record<string, string> {
  return { "--on-light": cssColor(roleColors(false)[role]), "--on-dark": cssColor(roleColors(true)[role]) };
}

/** Draw a chart for a file, with the legend of roles, in the colors of the light theme. */
export function drawFit(chart: SVGSVGElement, roles: readonly number[]): Picture {
  return { ...copySvg(chart), legend: roleLegend(roles) };
}

const RADIUS = 4;
const SMALL_RADIUS = 2.5;

/** Mark of a candidate: a disk fits, a ring fits since the compiler recomputes, a cross does not fit or has failed. */
export function Mark(props: {
  x: number;
  y: number;
  state: CandidateState;
  above?: boolean;
  small?: boolean;
}) {
  const { x, y, state, above = false, small = false } = props;
  const radius = small ? SMALL_RADIUS : RADIUS;
  if (state === "fits" || state === "recomputes") return <circle class={state} cx={x} cy={y} r={radius} />;
  if (above) return <path class={state} d={`M${x - 5},${y + 2} L${x},${y - 6} L${x + 5},${y + 2} Z`} />;
  const arm = radius;
  return (
    <path
      class={state}
      d={`M${x - arm},${y - arm} L${x + arm},${y + arm} M${x - arm},${y + arm} L${x + arm},${y - arm}`}
    />
  );
}

/** Marks of candidates, and their words. */
const MARKS = [
  ["fits", "fits"],
  ["recomputes", "fits, and the compiler recomputes"],
  ["refused", "does not fit"],
] as const;

/** Legend of the charts: marks, and roles from the bottom of the stack. */
export function FitKey({ roles, lines }: { roles: readonly number[]; lines: boolean }) {
  return (
    <ul class="fit-key" aria-label="Legend">
      {lines &&
        MARKS.map(([state, text]) => (
          <li key={state}>
            <svg width="14" height="14" aria-hidden="true">
              <g class="point chosen">
                <Mark x={7} y={7} state={state} />
              </g>
            </svg>
            {text}
          </li>
        ))}
      {!lines && (
        <>
          <li>
            <svg width="14" height="14" aria-hidden="true" class="fit-outline">
              <rect x="1" y="3" width="12" height="8" />
            </svg>
            reserved
          </li>
          <li>
            <svg width="14" height="14" aria-hidden="true" class="fit-limit-key">
              <line x1="7" x2="7" y1="1" y2="13" />
            </svg>
            limit of the target
          </li>
        </>
      )}
      {roles.map((role) => (
        <li key={role}>
          <Role role={role} />
        </li>
      ))}
    </ul>
  );
}

/** More are a list to choose from. */
const MAX_BUTTONS = 12;

interface Props {
  step: FitStep;
  choice: number;
  onPick: (choice: number) => void;
}

/** Choice of the line whose peak is shown by role, each with its largest value. */
export function ChoicePicker({ step, choice, onPick }: Props) {
  const named = choiceNamer(step);
  const texts = step.choices.map((each, i) => {
    const first = step.candidates.find((candidate) => candidate.choice === i) ?? step.candidates[0];
    const value = each.candidate === null ? undefined : step.candidates[each.candidate].value;
    return [named(each), largestText(value, first)] as const;
  });
  if (step.choices.length > MAX_BUTTONS)
    return (
      <select
        data-testid="fit-choice"
        aria-label="Peak by role of"
        value={choice}
        onChange={(event) => onPick(Number(event.currentTarget.value))}
      >
        {texts.map(([name, value], i) => (
          <option key={choiceKey(step.choices[i])} value={i}>{`${name} \u00b7 ${value}`}</option>
        ))}
      </select>
    );
  return (
    <div class="lines fit-choices" role="group" aria-label="Peak by role of" data-testid="fit-choice">
      {texts.map(([name, value], i) => (
        <button
          key={choiceKey(step.choices[i])}
          aria-pressed={i === choice}
          title={`Show the peak of ${name} by role. Largest ${step.searched} that fits: ${value}`}
          onClick={() => onPick(i)}
        >
          {name} <span class="muted">{value}</span>
        </button>
      ))}
    </div>
  );
}
