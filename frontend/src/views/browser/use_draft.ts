import type { TargetedEvent } from "preact";
import { useState } from "preact/hooks";

interface Field {
  value: string;
  onInput: (event: TargetedEvent<HTMLInputElement>) => void;
  onChange: (event: TargetedEvent<HTMLInputElement>) => void;
}

/** Of a field that is taken when it is finished: what is half typed stays, whatever is drawn again meanwhile. */
export function useTyped(told: string, take: (typed: string) => void): Field {
  const [typed, setTyped] = useState<string | null>(null);
  return {
    value: typed ?? told,
    onInput: (event) => setTyped(event.currentTarget.value),
    onChange: (event) => {
      take(event.currentTarget.value);
      setTyped(null);
    },
  };
}
