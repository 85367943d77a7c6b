import type { View } from "../../layout/axis/span";
import { layoutAgeStack, type LayoutRequest } from "../../layout/stacking/age_columns";
import type { AgeStack } from "../../layout/stacking/age_stack";
import { indexBlocks, countInWindow } from "../../layout/timeline/block_index";
import type { Blocks } from "../../layout/timeline/blocks";
import { emptyRects, layoutTimeline, type Rects } from "../../layout/timeline/rects";

/** With fewer blocks, drawing a whole picture takes no longer than a screen refresh. */
const MIN_COSTLY_BLOCKS = 30_000;

/** The same limit for rows live at once in an age stack, where each can have a rectangle in every column. */
const MIN_COSTLY_LIVE = 50;

/** Contents of a picture: blocks, or an age stack. */
export interface PaintLayer {
  /** Return the rectangles of a picture; with `minWidth`, only those that may be that wide. */
  layout: (wanted: LayoutRequest) => Rects;
  /** Whether drawing a whole picture may take longer than a screen refresh. */
  costly: boolean;
  /** Whether a rough picture takes less time and shows less detail. */
  coarsens: boolean;
  /** Return whether cached pictures replace pictures of this view while it is zoomed. */
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
