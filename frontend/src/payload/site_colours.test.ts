import { describe, expect, it } from "vitest";
import { fixtureRows } from "./fixture";

describe("colours of an allocator's rows", () => {
  const role = 0;

  it("are one per name and never the grey of what was there before", () => {
    const { colour } = fixtureRows([
      { role, op_name: "a" },
      { role, op_name: "b" },
      { role, op_name: "a" },
      { role, op_name: "a", start: -1 },
    ]);
    expect(colour[0]).toBe(colour[2]);
    expect(colour[3]).toBe(0);
    expect(Math.min(colour[0], colour[1])).toBeGreaterThan(0);
  });

  it("are one per size where there is no name", () => {
    const { colour } = fixtureRows([
      { role, size: 64 },
      { role, size: 64 },
    ]);
    expect(colour[0]).toBe(colour[1]);
  });

  it("are the roles where the profile knows any", () => {
    expect([...fixtureRows([{ role: 0 }, { role: 4 }]).colour]).toEqual([0, 4]);
  });
});
