import type { TargetedEvent } from "preact";
import { useEffect, useState } from "preact/hooks";

interface Field {
  value: string;
  onInput: (event: TargetedEvent<HTMLInputElement>) => void;
  onChange: (event: TargetedEvent<HTMLInputElement>) => void;
}

/** Keep the draft of a text field that takes effect on Enter or blur, across renders. */
export function useDraft(value: string, onChange: (draft: string) => void): Field {
  const [draft, setDraft] = useState<string | null>(null);
  return {
    value: draft ?? value,
    onInput: (event) => setDraft(event.currentTarget.value),
    onChange: (event) => {
      onChange(event.currentTarget.value);
      setDraft(null);
    },
  };
}

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
