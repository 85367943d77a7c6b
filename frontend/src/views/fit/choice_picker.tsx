import type { JSX } from "preact";
import type { FitStep } from "../../payload/generated/answers";
import { choiceKey, choiceNamer, largestText } from "../../payload/responses/fit";

/** More are a list to choose from. */
const MAX_BUTTONS = 12;

interface Props {
  step: FitStep;
  choice: number;
  onPick: (choice: number) => void;
}

/** Choice of the line whose peak is shown by role, each with its largest value. */
export function ChoicePicker({ step, choice, onPick }: Props): JSX.Element {
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
