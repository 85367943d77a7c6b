import type { FitCandidate, FitStep } from "../generated/answers";

const GIB = 2 ** 30;
export const LIMIT = 16 * GIB;

/** A candidate of choice 0 that fits, with other values of some fields. Sizes are in GiB. */
export function fitCandidate(
  value: FitCandidate["value"],
  reserved: number | null,
  other: Partial<FitCandidate> = {},
): FitCandidate {
  const bytes = reserved === null ? null : reserved * GIB;
  return {
    target: "v5e:2x2",
    knobs: { remat: "none" },
    changes: [],
    change: "",
    choice: 0,
    value,
    run: `run ${String(value)} ${other.choice ?? 0}`,
    fits: bytes !== null && bytes <= LIMIT,
    reserved_bytes: bytes,
    peak_bytes: bytes,
    capacity_bytes: LIMIT,
    limit_bytes: LIMIT,
    rematerialized: 0,
    rematerialized_flops: 0,
    roles:
      bytes === null
        ? []
        : [
            { role: 5, bytes: 0.75 * bytes },
            { role: 1, bytes: 0.25 * bytes },
          ],
    parts: [],
    seconds: 2,
    error: bytes === null ? "ValueError: no" : null,
    traceback: null,
    versions: { jax: "0.12.0", libtpu: "0.0.52" },
    caveats: [],
    ...other,
  };
}

/** A step with these candidates, and a choice for each of their targets and knobs. */
export function fitStep(candidates: FitCandidate[], searched = "batch"): FitStep {
  const numbers = [...new Set(candidates.map(({ choice }) => choice))].sort((a, b) => a - b);
  return {
    step: "/code/fit_gpt.py:step",
    searched,
    headline: "",
    candidates,
    choices: numbers.map((choice) => {
      const own = candidates.filter((each) => each.choice === choice);
      const best = (fitting: FitCandidate[]): number | null =>
        fitting.length === 0 ? null : candidates.indexOf(fitting[fitting.length - 1]);
      const { target, knobs, changes, change } = own[0];
      const fitting = own.filter(({ fits }) => fits);
      return {
        target,
        knobs,
        changes,
        change,
        sentences: [],
        candidate: best(fitting),
        without_recomputation: best(fitting.filter(({ rematerialized }) => rematerialized === 0)),
      };
    }),
  };
}
