import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

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
