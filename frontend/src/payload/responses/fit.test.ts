import { describe, expect, it } from "vitest";
import {
  choiceKey,
  choiceNamer,
  largestText,
  leftOf,
  recomputedText,
  stateOf,
  stepName,
  stepTimeText,
  versionTexts,
} from "./fit";
import { fitCandidate, fitStep, LIMIT } from "./fixture";

describe("a candidate", () => {
  it("has an estimated time with two digits", () => {
    const text = (seconds: number): string =>
      stepTimeText(fitCandidate(8, 4, { step_seconds: seconds, utilization: 0.414 }));
    expect([1.2345, 0.0844, 0.000123].map(text)).toEqual([
      "1.2 s, 41% MFU",
      "84 ms, 41% MFU",
      "120 µs, 41% MFU",
    ]);
  });

  it("fits, fits since the compiler recomputes, does not fit, or has no program", () => {
    const states = [
      fitCandidate(8, 4),
      fitCandidate(8, 15, { rematerialized: 7 }),
      fitCandidate(8, 17, { rematerialized: 7 }),
      fitCandidate(8, null),
    ].map(stateOf);
    expect(states).toEqual(["fits", "recomputes", "refused", "failed"]);
  });

  it("has room below the limit, if both are known", () => {
    expect(leftOf(fitCandidate(8, 12))).toBe(LIMIT / 4);
    expect(leftOf(fitCandidate(8, 12, { limit_bytes: null }))).toBeNull();
    expect(leftOf(fitCandidate(8, null))).toBeNull();
  });

  it("has the share of FLOPs that the compiler runs twice, where it is known", () => {
    expect(recomputedText(fitCandidate(8, 4, { rematerialized: 1200 }))).toBe("1,200");
    expect(recomputedText(fitCandidate(8, 4, { rematerialized: 7, rematerialized_flops: 0.124 }))).toBe(
      "7, 12% of FLOPs",
    );
  });
});

describe("a choice", () => {
  const other = { choice: 1, knobs: { remat: "full", layers: 8 } };

  it("is named by what distinguishes it", () => {
    const step = fitStep([
      fitCandidate(8, 4, { knobs: { remat: "none", layers: 8 } }),
      fitCandidate(8, 4, other),
    ]);
    expect(step.choices.map(choiceNamer(step))).toEqual(["remat=none", "remat=full"]);
    const changed = fitStep([
      fitCandidate(8, 4),
      fitCandidate(8, 4, { choice: 1, changes: ["donate:state"], change: "donate state" }),
    ]);
    expect(changed.choices.map(choiceNamer(changed))).toEqual(["v5e:2x2", "donate state"]);
    const alone = fitStep([fitCandidate(8, 4)]);
    expect(alone.choices.map(choiceNamer(alone))).toEqual(["v5e:2x2"]);
    const targets = fitStep([fitCandidate(8, 4), fitCandidate(8, 4, { choice: 1, target: "v6e:2x2" })]);
    expect(targets.choices.map(choiceNamer(targets))).toEqual(["v5e:2x2", "v6e:2x2"]);
  });

  it("says where the search began if nothing fits", () => {
    expect(largestText(172, fitCandidate(8, 4))).toBe("172");
    expect(largestText(undefined, fitCandidate(8, 20))).toBe("none fits");
    expect(largestText(undefined, fitCandidate(468, 20, { changes: ["donate:state"] }))).toBe("below 468");
  });

  it("has a key of all that it is", () => {
    expect(choiceKey(fitCandidate(8, 4, { ...other, changes: ["donate state"] }))).toBe(
      "v5e:2x2 remat=full layers=8 donate state",
    );
  });
});

it("names a step by its file, and versions once", () => {
  const step = fitStep([fitCandidate(8, 4), fitCandidate(16, 8), fitCandidate(32, null, { versions: {} })]);
  expect(stepName(step)).toBe("fit_gpt.py:step, batch");
  expect(versionTexts(step)).toEqual(["jax 0.12.0, libtpu 0.0.52"]);
});
