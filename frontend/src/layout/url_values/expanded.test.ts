import { describe, expect, it } from "vitest";
import { hashLabel, truncateForUrl, readExpanded, toggleExpanded } from "./expanded";

describe("expanded marks", () => {
  it("are a set, newest last; toggling twice restores it", () => {
    expect([...readExpanded("")]).toEqual([]);
    const opened = toggleExpanded(toggleExpanded("", "a"), "b");
    expect(opened).toBe("a.b");
    expect([...readExpanded(opened)]).toEqual(["a", "b"]);
    expect(toggleExpanded(opened, "a")).toBe("b");
    expect(toggleExpanded(toggleExpanded(opened, "a"), "b")).toBe("");
  });

  it("keep a URL short: the oldest are dropped, and no mark is cut in two", () => {
    const marks = Array.from({ length: 400 }, (_, i) => `mark${i}`);
    const kept = truncateForUrl(marks.join("."));
    expect(kept.length).toBeLessThanOrEqual(600);
    expect(kept.length).toBeGreaterThan(580);
    const left = kept.split(".");
    expect(left).toEqual(marks.slice(-left.length));
    expect(truncateForUrl("a.b")).toBe("a.b");
  });

  it("accept any text from a URL", () => {
    expect([...readExpanded("..a...__proto__.")]).toEqual(["a", "__proto__"]);
  });

  it("are hashes that need no escaping", () => {
    // The published value of FNV-1a for "a", 0xe40c292c.
    expect(parseInt(hashLabel("a"), 36)).toBe(0xe40c292c);
    expect(hashLabel("")).toBe((0x811c9dc5).toString(36));
    expect(hashLabel("<img src=x>.&#")).toMatch(/^[0-9a-z]{1,7}$/);
  });
});
