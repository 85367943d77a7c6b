import { useEffect, useReducer, useRef } from "preact/hooks";

/** A value with listeners. `set` merges a patch and notifies the listeners only if something changed. */
export interface Store<T> {
  get(): T;
  set(patch: Partial<T>): void;
  subscribe(listener: () => void): () => void;
}

export function createStore<T extends object>(initial: T): Store<T> {
  let state = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => state,
    set(patch) {
      const next = { ...state, ...patch };
      if ((Object.keys(patch) as (keyof T)[]).every((key) => Object.is(next[key], state[key]))) return;
      state = next;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Return what `select` picks from the store. The component renders again only when that changes. */
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
