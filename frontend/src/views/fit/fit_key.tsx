import type { JSX } from "preact";
import { Role } from "../widgets/role";
import { Mark } from "./mark";

/** Marks of candidates, and their words. */
export const MARKS = [
  ["fits", "fits"],
  ["recomputes", "fits, and the compiler recomputes"],
  ["refused", "does not fit"],
] as const;

/** Legend of the charts: marks, and roles from the bottom of the stack. */
export function FitKey(props: { roles: readonly number[]; dark: boolean; lines: boolean }): JSX.Element {
  const { roles, dark, lines } = props;
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
          <Role role={role} dark={dark} />
        </li>
      ))}
    </ul>
  );
}
