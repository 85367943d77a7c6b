import type { View } from "../../layout/axis/span";
import { layoutAgeStack, type LayoutRequest } from "../../layout/stacking/age_columns";
import type { AgeStack } from "../../layout/stacking/age_stack";
import { indexBlocks, countInWindow } from "../../layout/timeline/block_index";
import type { Blocks } from "../../layout/timeline/blocks";
import { emptyRects, layoutTimeline, type Rects } from "../../layout/timeline/rects";

/** Of fewer blocks a whole picture takes no longer than the screen does to show it. */
const MIN_COSTLY_BLOCKS = 30_000;

/** Of fewer rows live at once in a stack by age: each can be a rectangle in every column. */
const MIN_COSTLY_LIVE = 50;

/** What there is to draw. */
export interface PaintLayer {
  /** The rectangles of a picture; where `least` is given, of those only that may be as wide. */
  layout: (wanted: LayoutRequest) => Rects;
  /** Whether a whole picture may take longer than the screen does to show it. */
  costly: boolean;
  /** Whether a rough picture takes less, and shows less. */
  coarsens: boolean;
  /** Whether earlier pictures are to stand in for one of this view while it changes its scale. */
  scales: (view: View) => boolean;
}

export function blockLayer(blocks: Blocks): PaintLayer {
  const index = indexBlocks(blocks);
  const rects = emptyRects(blocks.length);
  return {
    layout: ({ view, width, height, minWidth }) =>
      layoutTimeline(index, view, width, height, rects, minWidth),
    costly: blocks.length >= MIN_COSTLY_BLOCKS,
    coarsens: false,
    scales: (view) => countInWindow(index, view.x) >= MIN_COSTLY_BLOCKS,
  };
}

export function ageLayer(stack: AgeStack, clock: Float64Array | null): PaintLayer {
  const rects = emptyRects(0);
  return {
    layout: (wanted) => layoutAgeStack(stack, clock, wanted, rects),
    costly: stack.maxLive >= MIN_COSTLY_LIVE,
    coarsens: true,
    scales: () => false,
  };
}
