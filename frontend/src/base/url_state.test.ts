import { describe, expect, it } from "vitest";
import { readParts, writeParts } from "./url_state";

const KEYS = new Set(["run", "search", "zoom"]);

describe("the fragment", () => {
  it("gives back what was written", () => {
    const values = new Map([
      ["run", "train/2026_11_20"],
      ["search", "a&b=c#d %+ é"],
      ["zoom", "1.5,20"],
    ]);
    const fragment = writeParts("", KEYS, values);
    expect(fragment).toBe("run=train/2026_11_20&search=a%26b%3Dc%23d%20%25%2B%20%C3%A9&zoom=1.5,20");
    expect(readParts(`#${fragment}`, KEYS)).toEqual(values);
  });

  it("keeps the parts of the host", () => {
    expect(writeParts("#memory&other=1&zoom=1,2", KEYS, new Map([["run", "r"]]))).toBe(
      "memory&other=1&run=r",
    );
  });

  it("ignores what it does not know and takes broken escapes as they stand", () => {
    expect(readParts("#memory&other=1&search=100%&run", KEYS)).toEqual(new Map([["search", "100%"]]));
  });
});
