import { describe, expect, it } from "vitest";
import { hashLabel, truncateForUrl, readExpanded, toggleExpanded } from "./expanded";

describe("what is opened", () => {
  it("is a set of marks, the newest last; toggled twice it is as it began", () => {
    expect([...readExpanded("")]).toEqual([]);
    const opened = toggleExpanded(toggleExpanded("", "a"), "b");
    expect(opened).toBe("a.b");
    expect([...readExpanded(opened)]).toEqual(["a", "b"]);
    expect(toggleExpanded(opened, "a")).toBe("b");
    expect(toggleExpanded(toggleExpanded(opened, "a"), "b")).toBe("");
  });

  it("keeps a URL short: the oldest are left out, and no mark is cut in two", () => {
    const marks = Array.from({ length: 400 }, (_, i) => `mark${i}`);
    const kept = truncateForUrl(marks.join("."));
    expect(kept.length).toBeLessThanOrEqual(600);
    expect(kept.length).toBeGreaterThan(580);
    const left = kept.split(".");
    expect(left).toEqual(marks.slice(-left.length));
    expect(truncateForUrl("a.b")).toBe("a.b");
  });

  it("takes what comes from a URL as it is", () => {
    expect([...readExpanded("..a...__proto__.")]).toEqual(["a", "__proto__"]);
  });

  it("has a mark for each label that needs no escape", () => {
    // The published value of FNV-1a for "a", 0xe40c292c.
    expect(parseInt(hashLabel("a"), 36)).toBe(0xe40c292c);
    expect(hashLabel("")).toBe((0x811c9dc5).toString(36));
    expect(hashLabel("<img src=x>.&#")).toMatch(/^[0-9a-z]{1,7}$/);
  });
});
