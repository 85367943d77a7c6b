import { describe, expect, it, vi } from "vitest";
import { createStore } from "./store";

describe("a store", () => {
  it("notifies its listeners of changes only", () => {
    const store = createStore({ a: 1, b: "x" });
    const listener = vi.fn();
    const stop = store.subscribe(listener);
    store.set({ a: 1, b: "x" });
    expect(listener).not.toHaveBeenCalled();
    store.set({ a: 2 });
    expect(listener).toHaveBeenCalledOnce();
    expect(store.get()).toEqual({ a: 2, b: "x" });
    stop();
    store.set({ a: 3 });
    expect(listener).toHaveBeenCalledOnce();
  });

  it("tells changes by the user from defaults that the page fills in", () => {
    const store = createStore({ a: 1, b: "x" });
    const listener = vi.fn();
    store.subscribe(listener);
    store.set({ a: 2 });
    store.fill({ b: "y" });
    expect(listener.mock.calls).toEqual([
      [{ a: 1, b: "x" }, false],
      [{ a: 2, b: "x" }, true],
    ]);
  });

  it("allows a listener to unsubscribe while it is notified", () => {
    const store = createStore({ a: 1 });
    const second = vi.fn();
    const stop = store.subscribe(() => stop());
    store.subscribe(second);
    store.set({ a: 2 });
    expect(second).toHaveBeenCalledOnce();
  });
});
