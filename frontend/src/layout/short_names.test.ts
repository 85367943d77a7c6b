import { describe, expect, it } from "vitest";
import { shortNames } from "./short_names";

const LONG = "jit_train_step_with_a_long_name_of_many_words";

describe("shortNames", () => {
  it("cuts the part that another name begins with, so that what differs is shown", () => {
    const names = [`${LONG}_first (a)`, `${LONG}_second (a)`, "jit_init"];
    const short = shortNames(names);
    expect(names.map(short)).toEqual([
      "jit_train_…words_first (a)",
      "jit_train_…words_second (a)",
      "jit_init",
    ]);
    expect(new Set(names.map(short)).size).toBe(3);
  });

  it("keeps short names, and long ones that differ at the start", () => {
    const names = ["jit_step (a)", "jit_step (b)", `a${LONG}`, `b${LONG}`];
    expect(names.map(shortNames(names))).toEqual(names);
  });

  it("gives different names different texts", () => {
    const layers = Array.from(
      { length: 25 },
      (_, i) => `layer_${i}/mlp/a_long_name_of_a_scope_in_each_layer`,
    );
    const names = ["forward", "backward"].flatMap((pass) =>
      layers.map((layer) => `${LONG}/${pass}/${layer}`),
    );
    expect(new Set(names.map(shortNames(names))).size).toBe(50);
  });

  it("keeps a name that is not in the list", () => {
    expect(shortNames([LONG])("x")).toBe("x");
  });
});
