/** Whether anybody can see the page. */
export interface Visibility {
  isHidden: () => boolean;
  /** Call `listener` when the visibility may have changed. Return a function that stops listening. */
  subscribe: (listener: () => void) => () => void;
}

interface Polling {
  /** Ask once; resolve to true if the answer is new. A rejection is a failure. */
  ask: (signal: AbortSignal) => Promise<boolean>;
  /** Shortest time between an answer and the next question, in ms. */
  intervalMs: number;
  visibility: Visibility;
}

/** Wait at least this many times as long as the last answer took, so that a slow server is mostly idle. */
const REST = 10;
/** After this many unchanged answers, the waits grow. */
const PATIENCE = 5;
export const MAX_WAIT_MS = 60_000;

/** Ask again and again while the page is visible. Return a function that ends it. */
export function startPolling({ ask, intervalMs, visibility }: Polling): () => void {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let due = Date.now() + intervalMs;
  let asking = false;
  let failures = 0;
  let unchanged = 0;

  const plan = (): void => {
    clearTimeout(timer);
    if (asking || abort.signal.aborted || visibility.isHidden()) return;
    timer = setTimeout(() => void askOnce(), Math.max(due - Date.now(), 0));
  };
  const askOnce = async (): Promise<void> => {
    const began = Date.now();
    asking = true;
    try {
      unchanged = (await ask(abort.signal)) ? 0 : unchanged + 1;
      failures = 0;
    } catch {
      failures += 1;
    }
    asking = false;
    const now = Date.now();
    due = now + waitMs(intervalMs, now - began, failures, unchanged);
    plan();
  };
  const unsubscribe = visibility.subscribe(plan);
  plan();
  return () => {
    abort.abort();
    clearTimeout(timer);
    unsubscribe();
  };
}

/** Return the time to the next question: longer after failures, unchanged answers and slow answers. */
function waitMs(intervalMs: number, tookMs: number, failures: number, unchanged: number): number {
  const slower = failures > 0 ? 2 ** failures : Math.max(unchanged / PATIENCE, 1);
  return Math.max(Math.min(intervalMs * slower, Math.max(MAX_WAIT_MS, intervalMs)), tookMs * REST);
}
