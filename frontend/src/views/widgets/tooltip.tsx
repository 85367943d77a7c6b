import type { ComponentChildren } from "preact";

/** Tooltip beside the pointer. `x` and `y` are relative to the positioned parent, which is `width` pixels wide. */
export function Tooltip(props: { x: number; y: number; width: number; children: ComponentChildren }) {
  // The side with more room: the tooltip covers neither the item nor the edge of the chart.
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
