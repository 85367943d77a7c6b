import { describe, expect, it } from "vitest";
import { fixtureRows } from "./fixture";

describe("colours of an allocator's rows", () => {
  const role = 0;
  const KIB = 1024;

  it("are one per size and never the grey of what was there before", () => {
    const { colour } = fixtureRows([
      { role, size: 64 * KIB },
      { role, size: 128 * KIB },
      { role, size: 64 * KIB },
      { role, size: 64 * KIB, start: -1 },
    ]);
    expect(colour[0]).toBe(colour[2]);
    expect(colour[3]).toBe(0);
    expect(Math.min(colour[0], colour[1])).toBeGreaterThan(0);
  });

  it("tell sizes apart that are powers of two", () => {
    const { colour } = fixtureRows(Array.from({ length: 20 }, (_, i) => ({ role, size: 256 * 2 ** i })));
    expect(new Set(colour).size).toBeGreaterThan(6);
  });

  it("are the roles where the profile knows any", () => {
    expect([...fixtureRows([{ role: 0 }, { role: 4 }]).colour]).toEqual([0, 4]);
  });
});
