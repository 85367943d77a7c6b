import { expect, it, vi } from "vitest";

vi.mock("../../payload/report", () => ({ fileUrl: (url: string) => url }));
const started: { url: string; onerror?: () => void }[] = [];
vi.stubGlobal(
  "Worker",
  class {
    onerror?: () => void;
    constructor(readonly url: string) {
      started.push(this);
    }
  },
);
const { prepareWorker, startWorker } = await import("./workers");

it("returns a prepared worker once, and none that has failed", () => {
  prepareWorker("paint.js");
  prepareWorker("paint.js");
  expect(started.map(({ url }) => url)).toEqual(["paint.js"]);
  expect(startWorker("paint.js")).toBe(started[0]);
  expect(startWorker("paint.js")).toBe(started[1]);
  prepareWorker("place.js");
  started[2].onerror?.();
  expect(startWorker("place.js")).toBe(started[3]);
});
