import type { JSX } from "preact";
import type { CandidateState } from "../../payload/responses/fit";

const RADIUS = 4;
const SMALL_RADIUS = 2.5;

/** Mark of a candidate: a disk fits, a ring fits since the compiler recomputes, a cross does not fit or has failed. */
export function Mark(props: {
  x: number;
  y: number;
  state: CandidateState;
  above?: boolean;
  small?: boolean;
}): JSX.Element {
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
