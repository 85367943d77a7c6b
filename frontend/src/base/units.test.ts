import { describe, expect, it } from "vitest";
import {
  formatBytes,
  formatCounted,
  formatLeft,
  formatSeconds,
  formatShare,
  formatSigned,
  parseBytes,
} from "./units";

describe("formatBytes", () => {
  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1000, "0.98 KiB"],
    [1024, "1.00 KiB"],
    [1.5 * 2 ** 20, "1.50 MiB"],
    [2 ** 30 - 1, "1.00 GiB"],
    [9.996 * 2 ** 30, "10.0 GiB"],
    [71.2 * 2 ** 30, "71.2 GiB"],
    [640 * 2 ** 20, "640 MiB"],
    [1000 * 2 ** 30, "0.98 TiB"],
    [-2048, "\u22122.00 KiB"],
    [2 ** 61, "2048 PiB"],
  ])("%d is %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe("formatCounted", () => {
  it("uses the singular for one and the plural for zero", () => {
    expect(formatCounted(1, "hole")).toBe("1 hole");
    expect(formatCounted(0, "hole")).toBe("0 holes");
    expect(formatCounted(1234, "entry", "entries")).toBe("1,234 entries");
  });
});

describe("formatShare", () => {
  it("never rounds a nonzero share to 0%", () => {
    expect(formatShare(1, 1000)).toBe("<1%");
    expect(formatShare(0, 1000)).toBe("0%");
    expect(formatShare(480, 1000)).toBe("48%");
    expect(formatShare(1, 0)).toBe("0%");
  });
});

describe("parseBytes", () => {
  it.each([
    ["1MiB", 2 ** 20],
    ["1.5 g", 1.5 * 2 ** 30],
    ["300", 300],
    ["300 bytes", 300],
    ["2 KB", 2048],
    [".5k", 512],
    ["", null],
    ["big", null],
    ["1 MiX", null],
    ["-1", null],
  ])("%s is %s", (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
  });
});

it("formats differences with their sign, and distances to a limit", () => {
  expect([2 ** 20, 0, -(2 ** 20)].map(formatSigned)).toEqual(["+1.00 MiB", "0 B", "\u22121.00 MiB"]);
  expect([2 ** 27, -(2 ** 29)].map(formatLeft)).toEqual(["128 MiB", "512 MiB over"]);
});

describe("formatSeconds", () => {
  it("has as many digits as the figure", () => {
    expect([0.084, 2, 0.00052, 3e-9].map((seconds) => formatSeconds(seconds))).toEqual([
      "84 ms",
      "2.0 s",
      "520 \u00b5s",
      "3.0 ns",
    ]);
    expect(formatSeconds(0.0837, 3)).toBe("83.7 ms");
    expect([0, NaN].map((seconds) => formatSeconds(seconds))).toEqual(["0 s", "0 s"]);
  });
});
