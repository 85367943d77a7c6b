import { describe, expect, it } from "vitest";
import { shortNames } from "./short_names";

const PATH = "jit(train_step)/transpose(jvp(LModel))/while/body/checkpoint/rematted_computation";

describe("shortNames", () => {
  it("cut what names have in common and keep what differs", () => {
    const names = [`${PATH}/attention/reduce_max`, `${PATH}/attention/div`, "opt_state"];
    const short = shortNames(names);
    expect(short.get(names[0])).toBe("…/rematted_computation/attention/reduce_max");
    expect(short.get(names[1])).toBe("…/checkpoint/rematted_computation/attention/div");
    expect(short.get("opt_state")).toBe("opt_state");
  });

  it("keep names apart that differ before a long common end", () => {
    const names = [`forward/${PATH}`, `backward/${PATH}`];
    expect([...shortNames(names).values()].sort()).toEqual([...names].sort());
  });

  it("keep all of a long name that has nothing in common with others", () => {
    expect(shortNames([PATH, "loss"]).get(PATH)).toBe(PATH);
  });

  it("give different names different texts", () => {
    const layers = Array.from(
      { length: 25 },
      (_, i) => `layer_${i}/mlp/a_long_name_of_a_scope_in_each_of_the_layers`,
    );
    const names = ["forward", "backward"].flatMap((pass) =>
      layers.map((layer) => `${PATH}/${pass}/${layer}`),
    );
    expect(new Set(shortNames(names).values()).size).toBe(50);
  });
});
