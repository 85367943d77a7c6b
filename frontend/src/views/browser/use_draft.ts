import type { TargetedEvent } from "preact";
import { useState } from "preact/hooks";

interface Field {
  value: string;
  onInput: (event: TargetedEvent<HTMLInputElement>) => void;
  onChange: (event: TargetedEvent<HTMLInputElement>) => void;
}

/** Of a field that is taken when it is finished: what is half typed stays, whatever is drawn again meanwhile. */
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
