import { useEffect, useState } from "preact/hooks";

const PAUSE_MS = 150;

/** Return the value after it has not changed for a moment. */
export function useDeferred<T>(value: T, pause = PAUSE_MS): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    if (Object.is(value, settled)) return;
    const timer = window.setTimeout(() => setSettled(() => value), pause);
    return () => window.clearTimeout(timer);
  }, [value, settled, pause]);
  return settled;
}
