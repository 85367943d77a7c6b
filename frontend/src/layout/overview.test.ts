import { describe, expect, it } from "vitest";
import type { CoResidency, OverviewRow } from "../payload/generated/answers";
import { partText, recordingName } from "../payload/responses/names";
import { overviewRow } from "./fixture";
import { foldHosts, foldPlaces } from "./overview";

const row = overviewRow;

const train = row("jit_train(1)", { part: { name: "layer_*", repeats: 48, bytes: 2000, share: 0.4 } });
const gpu2 = row("b", { kind: "allocator", axis: "TIME", title: "allocator", memory: "GPU_2_bfc" });

describe("a recording", () => {
  it("is named, and its largest part", () => {
    expect([recordingName(train), recordingName(gpu2)]).toEqual(["jit_train(1)", "GPU_2_bfc"]);
    expect([partText(train), partText(gpu2)]).toEqual(["layer_* ×48", ""]);
    const named = (name: string): string =>
      partText(row("x", { part: { name, repeats: 3, bytes: 1, share: 1 } }));
    expect(named("mlp")).toBe("mlp");
    expect(named("main.<locals>.f.<locals>.step (work/users/me/train.py:29)")).toBe("step (train.py:29)");
    expect(named("train.py:61")).toBe("train.py:61");
    expect(named("bsd,de->bse")).toBe("bsd,de->bse");
  });
});

const programRow = (host: string, more: Partial<OverviewRow> = {}): OverviewRow =>
  overviewRow(`run|${host}|jit_f(1)`, { title: "jit_f(1)", host, ...more });

describe("foldHosts", () => {
  it("folds equal programs of several hosts into the first, with hosts in numeric order", () => {
    const [tenth, second, first] = [programRow("h10"), programRow("h2"), programRow("h1")];
    expect(foldHosts([tenth, second, first])).toEqual([{ ...tenth, equal: [first, second, tenth] }]);
  });

  it("keeps a program apart that differs in any figure", () => {
    const other = programRow("h2", { peak_bytes: 101 });
    expect(
      foldHosts([programRow("h1"), other, programRow("h3")]).map(({ equal }) =>
        equal?.map(({ host }) => host),
      ),
    ).toEqual([["h1", "h3"], ["h2"]]);
    expect(foldHosts([programRow("h1"), programRow("h2", { memory: "VMEM" })])).toHaveLength(2);
    expect(
      foldHosts([programRow("h1"), programRow("h2", { role: { role: 1, bytes: 1, share: 0.01 } })]),
    ).toHaveLength(2);
  });

  it("does not fold allocators: each device may differ later", () => {
    expect(
      foldHosts([programRow("h1", { kind: "allocator" }), programRow("h2", { kind: "allocator", id: "b" })]),
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
