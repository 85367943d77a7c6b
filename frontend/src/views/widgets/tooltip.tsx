import type { ComponentChildren, JSX } from "preact";

/** What is under the pointer, beside it. `x` and `y` are relative to the positioned parent of `width` pixels. */
export function Tooltip(props: {
  x: number;
  y: number;
  width: number;
  children: ComponentChildren;
}): JSX.Element {
  // On the side with more room, so that it never covers what is pointed at nor leaves the chart.
  const left = props.x < props.width / 2;
  const style = left
    ? { left: `${props.x + 14}px`, top: `${props.y}px` }
    : { right: `${props.width - props.x + 14}px`, top: `${props.y}px` };
  return (
    <div class="tooltip" style={style} role="presentation">
      {props.children}
    </div>
  );
}
