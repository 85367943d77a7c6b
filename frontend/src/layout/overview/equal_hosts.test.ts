import { describe, expect, it } from "vitest";
import type { CoResidency, OverviewRow } from "../../payload/generated/answers";
import { overviewRow } from "./row_fixture";
import { foldHosts, foldPlaces } from "./equal_hosts";

const row = (host: string, more: Partial<OverviewRow> = {}): OverviewRow =>
  overviewRow(`run|${host}|jit_f(1)`, { title: "jit_f(1)", host, ...more });

describe("foldHosts", () => {
  it("folds equal programs of several hosts into the first, with hosts in numeric order", () => {
    const [tenth, second, first] = [row("h10"), row("h2"), row("h1")];
    expect(foldHosts([tenth, second, first])).toEqual([{ row: tenth, equal: [first, second, tenth] }]);
  });

  it("keeps a program apart that differs in any figure", () => {
    const other = row("h2", { peak_bytes: 101 });
    expect(
      foldHosts([row("h1"), other, row("h3")]).map(({ equal }) => equal.map(({ host }) => host)),
    ).toEqual([["h1", "h3"], ["h2"]]);
    expect(foldHosts([row("h1"), row("h2", { memory: "VMEM" })])).toHaveLength(2);
    expect(foldHosts([row("h1"), row("h2", { role: { role: 1, bytes: 1, share: 0.01 } })])).toHaveLength(2);
  });

  it("does not fold allocators: each device may differ later", () => {
    expect(
      foldHosts([row("h1", { kind: "allocator" }), row("h2", { kind: "allocator", id: "b" })]),
    ).toHaveLength(2);
  });
});

describe("foldPlaces", () => {
  it("folds memories with the same programs and figures, whatever their ids", () => {
    const place = (host: string, bytes = 7): CoResidency => ({
      host,
      memory: "HBM",
      bytes,
      sentence: "",
      programs: [
        { id: `${host}|f`, title: "f", held_bytes: 1, again_bytes: 0, temporary_bytes: 2, runs: null },
      ],
      measured: [{ id: `${host}|m`, memory: "GPU_0", bytes }],
    });
    const folded = foldPlaces([place("h10"), place("h2"), place("h1", 8)]);
    expect(folded.map(({ hosts }) => hosts)).toEqual([["h2", "h10"], ["h1"]]);
  });
});
