import { describe, expect, it } from "vitest";
import { markOf, openedInUrl, readOpened, toggleOpened } from "./opened";

describe("what is opened", () => {
  it("is a set of marks, the newest last; toggled twice it is as it began", () => {
    expect([...readOpened("")]).toEqual([]);
    const opened = toggleOpened(toggleOpened("", "a"), "b");
    expect(opened).toBe("a.b");
    expect([...readOpened(opened)]).toEqual(["a", "b"]);
    expect(toggleOpened(opened, "a")).toBe("b");
    expect(toggleOpened(toggleOpened(opened, "a"), "b")).toBe("");
  });

  it("keeps a URL short: the oldest are left out, and no mark is cut in two", () => {
    const marks = Array.from({ length: 400 }, (_, i) => `mark${i}`);
    const kept = openedInUrl(marks.join("."));
    expect(kept.length).toBeLessThanOrEqual(600);
    expect(kept.length).toBeGreaterThan(580);
    const left = kept.split(".");
    expect(left).toEqual(marks.slice(-left.length));
    expect(openedInUrl("a.b")).toBe("a.b");
  });

  it("takes what comes from a URL as it is", () => {
    expect([...readOpened("..a...__proto__.")]).toEqual(["a", "__proto__"]);
  });

  it("has a mark for each label that needs no escape", () => {
    // The published value of FNV-1a for "a", 0xe40c292c.
    expect(parseInt(markOf("a"), 36)).toBe(0xe40c292c);
    expect(markOf("")).toBe((0x811c9dc5).toString(36));
    expect(markOf("<img src=x>.&#")).toMatch(/^[0-9a-z]{1,7}$/);
  });
});
