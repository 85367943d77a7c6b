import type { RefObject, TargetedEvent } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

/** CSS pixels. */
export interface Size {
  width: number;
  height: number;
}

/** Return the size of an element in CSS pixels, kept up to date; zero before the first layout. */
export function useSize(element: RefObject<HTMLElement | null>): Size {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const node = element.current;
    if (node === null) return;
    const measure = (): void => setSize({ width: node.clientWidth, height: node.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  return size;
}

/** Return the width of an element in whole CSS pixels, kept up to date; 0 before the first layout. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  return Math.floor(useSize(element).width);
}

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
