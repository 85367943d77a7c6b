import type { TargetedEvent } from "preact";
import { useState } from "preact/hooks";

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
