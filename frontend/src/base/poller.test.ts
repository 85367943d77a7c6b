import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { MAX_WAIT_MS, startPolling } from "./poller";

const INTERVAL = 2000;

/** A page that tests hide and show. */
function page() {
  const listeners = new Set<() => void>();
  let hidden = false;
  return {
    isHidden: () => hidden,
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    show(visible: boolean) {
      hidden = !visible;
      for (const listener of [...listeners]) listener();
    },
    listeners,
  };
}

let stop = (): void => undefined;

function poll(ask: (signal: AbortSignal) => Promise<boolean>, visibility = page()) {
  const asked = vi.fn(ask);
  stop = startPolling({ ask: asked, intervalMs: INTERVAL, visibility });
  return { asked, visibility };
}

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  stop();
  vi.useRealTimers();
});

describe("polling", () => {
  it("asks once an interval while there is news", async () => {
    const { asked } = poll(() => Promise.resolve(true));
    await pass(INTERVAL - 1);
    expect(asked).toHaveBeenCalledTimes(0);
    await pass(1 + 9 * INTERVAL);
    expect(asked).toHaveBeenCalledTimes(10);
  });

  it("asks nothing while the page is hidden, and at once when it is shown again", async () => {
    const { asked, visibility } = poll(() => Promise.resolve(true));
    visibility.show(false);
    await pass(100 * INTERVAL);
    expect(asked).toHaveBeenCalledTimes(0);
    visibility.show(true);
    await pass(0);
    expect(asked).toHaveBeenCalledTimes(1);
    visibility.show(false);
    visibility.show(true);
    await pass(INTERVAL - 1);
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it("asks less and less often while the server fails, and as before once it answers", async () => {
    let up = false;
    const { asked } = poll(() => (up ? Promise.resolve(true) : Promise.reject(new Error("down"))));
    await pass(INTERVAL);
    for (const factor of [2, 4, 8, 16]) {
      const count = asked.mock.calls.length;
      await pass(factor * INTERVAL - 1);
      expect(asked).toHaveBeenCalledTimes(count);
      await pass(1);
      expect(asked).toHaveBeenCalledTimes(count + 1);
    }
    await pass(20 * MAX_WAIT_MS);
    expect(asked.mock.calls.length).toBeGreaterThan(20);
    up = true;
    await pass(MAX_WAIT_MS);
    const count = asked.mock.calls.length;
    await pass(3 * INTERVAL);
    expect(asked).toHaveBeenCalledTimes(count + 3);
  });

  it("asks less often while there is no news", async () => {
    let isNew = false;
    const { asked } = poll(() => Promise.resolve(isNew));
    await pass(100 * MAX_WAIT_MS);
    const idle = asked.mock.calls.length;
    await pass(10 * MAX_WAIT_MS);
    expect(asked.mock.calls.length - idle).toBeLessThanOrEqual(11);
    isNew = true;
    await pass(MAX_WAIT_MS);
    const count = asked.mock.calls.length;
    await pass(3 * INTERVAL);
    expect(asked).toHaveBeenCalledTimes(count + 3);
  });

  it("gives a slow server ten times as long as it took, and never asks twice at once", async () => {
    const { asked } = poll(() => new Promise((resolve) => setTimeout(() => resolve(true), 1000)));
    await pass(INTERVAL + 1000 + 9999);
    expect(asked).toHaveBeenCalledTimes(1);
    await pass(1);
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it("ends in the middle of a question", async () => {
    let signal: AbortSignal | null = null;
    const { asked, visibility } = poll((given) => {
      signal = given;
      return new Promise((resolve) => setTimeout(() => resolve(true), 500));
    });
    await pass(INTERVAL);
    stop();
    expect(signal).toMatchObject({ aborted: true });
    await pass(100 * INTERVAL);
    expect(asked).toHaveBeenCalledTimes(1);
    expect(visibility.listeners.size).toBe(0);
  });
});
