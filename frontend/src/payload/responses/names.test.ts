import { describe, expect, it } from "vitest";
import type { FitsWith } from "../generated/answers";
import { makeAdvice, makeAdviceList } from "./fixture";
import { bestChange, savingText } from "./names";

const MIB = 2 ** 20;

describe("a saving", () => {
  it("is what is safe to count on, with the most behind it where that is another figure", () => {
    const text = (safe: number, most: number): string =>
      savingText({ saving_bytes: safe, saving_at_most_bytes: most });
    expect(text(217 * MIB, 834 * MIB)).toBe("−217 MiB (up to −834 MiB)");
    expect(text(416 * MIB, 416 * MIB + 1000)).toBe("−416 MiB");
    expect(text(0, 834 * MIB)).toBe("up to −834 MiB");
  });
});

describe("the best change", () => {
  const [offload, donate] = [
    makeAdvice("Offload", { saving_bytes: 30 * MIB }),
    makeAdvice("Donate", { saving_bytes: 20 * MIB, evidence: "compiled" }),
  ];

  it("is the first one, and says where a compile has shown it", () => {
    expect(bestChange(makeAdviceList([]))).toBeNull();
    expect(bestChange(makeAdviceList([offload, donate]))).toMatchObject({
      title: "Offload",
      saving: "−30.0 MiB",
    });
    expect(bestChange(makeAdviceList([donate]))?.saving).toBe("−20.0 MiB compiled");
  });

  it("is the set of changes with which a program fits, where it does not", () => {
    const set: FitsWith = { pieces: [0, 1], after_bytes: 90 * MIB, fits: true, evidence: "simulated" };
    const list = makeAdviceList([offload, donate], { limit_bytes: 100 * MIB, fits_with: set });
    expect(bestChange(list)).toEqual({
      title: "fits with: Offload + Donate",
      saving: "90.00 MiB of 100.0 MiB",
      about: "Offload. Donate.",
    });
    const best = bestChange({ ...list, fits_with: { ...set, fits: false } });
    expect(best?.title).toBe("does not fit even with: Offload + Donate");
  });
});
