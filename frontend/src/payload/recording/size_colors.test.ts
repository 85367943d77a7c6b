import { describe, expect, it } from "vitest";
import { fixtureRows } from "./fixture";

describe("colors of an allocator's rows", () => {
  const role = 0;
  const KIB = 1024;

  it("are the same for equal sizes, and gray only for rows older than the recording", () => {
    const { color } = fixtureRows([
      { role, size: 64 * KIB },
      { role, size: 128 * KIB },
      { role, size: 64 * KIB },
      { role, size: 64 * KIB, start: -1 },
    ]);
    expect(color[0]).toBe(color[2]);
    expect(color[3]).toBe(0);
    expect(Math.min(color[0], color[1])).toBeGreaterThan(0);
  });

  it("distinguish sizes that are powers of two", () => {
    const { color } = fixtureRows(Array.from({ length: 20 }, (_, i) => ({ role, size: 256 * 2 ** i })));
    expect(new Set(color).size).toBeGreaterThan(6);
  });

  it("are role colors if the profile has any role", () => {
    expect([...fixtureRows([{ role: 0 }, { role: 4 }]).color]).toEqual([0, 4]);
  });
});
