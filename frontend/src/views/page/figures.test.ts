import { describe, expect, it } from "vitest";
import { notACapacity, readCapacity } from "./figures";

describe("readCapacity", () => {
  it("reads sizes and names of accelerators", () => {
    expect(readCapacity("15.75 GiB")).toBe(15.75 * 2 ** 30);
    expect(["h100", " H100 ", "NVIDIA H100"].map(readCapacity)).toEqual(Array(3).fill(84942979072));
    expect(readCapacity("TPU v5e")).toBe(readCapacity("v5litepod"));
    expect(readCapacity(" ")).toBeNull();
  });

  it("reads nothing else", () => {
    for (const typed of ["banana", "0", "-1GiB", "2 PiB"]) expect(readCapacity(typed), typed).toBeUndefined();
    expect(notACapacity(" banana ")).toMatch(/^banana is no size and no accelerator .*h100/);
  });
});
