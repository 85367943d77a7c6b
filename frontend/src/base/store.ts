import { useEffect, useReducer, useRef } from "preact/hooks";

/** A function that is called after a change. `filled`: the page made the change, not the user. */
type Listener<T> = (before: T, filled: boolean) => void;

/** A value with listeners, which are notified only if something changed. */
export interface Store<T> {
  get(): T;
  /** Merge changes by the user. */
  set(patch: Partial<T>): void;
  /** Merge defaults that the page chose. */
  fill(patch: Partial<T>): void;
  subscribe(listener: Listener<T>): () => void;
}

export function createStore<T extends object>(initial: T): Store<T> {
  let state = initial;
  const listeners = new Set<Listener<T>>();
  const merge = (patch: Partial<T>, filled: boolean): void => {
    const before = state;
    const next = { ...before, ...patch };
    if ((Object.keys(patch) as (keyof T)[]).every((key) => Object.is(next[key], before[key]))) return;
    state = next;
    for (const listener of [...listeners]) listener(before, filled);
  };
  return {
    get: () => state,
    set: (patch) => merge(patch, false),
    fill: (patch) => merge(patch, true),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Return the value that `select` picks from the store. The component renders again only when it changes. */
export function useStore<T extends object, S>(store: Store<T>, select: (state: T) => S): S {
  const [, again] = useReducer((count: number) => count + 1, 0);
  const value = select(store.get());
  const shown = useRef({ select, value });
  shown.current = { select, value };
  useEffect(() => {
    const check = (): void => {
      if (!Object.is(shown.current.select(store.get()), shown.current.value)) again(undefined);
    };
    // The store may have changed between the render and this effect.
    check();
    return store.subscribe(check);
  }, [store]);
  return value;
}
