import { useEffect, useMemo, useState } from "preact/hooks";
import { timelineBlocks, regionBands } from "../../../layout/timeline/blocks";
import { TimelineRenderer } from "../../../render/workers/timeline_renderer";
import type { Scene } from "./scene";

interface Rendering {
  renderer: TimelineRenderer | null;
  /** Error of the renderer, or null. */
  failure: string | null;
}

/** Create the renderer of a scene, with its blocks and search matches. */
export function useRenderer(scene: Scene, highlighted: Uint8Array | null): Rendering {
  const [renderer, setRenderer] = useState<TimelineRenderer | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    const made = new TimelineRenderer(setFailure);
    setRenderer(made);
    return () => made.close();
  }, []);
  // During render rather than in an effect: the charts' effects, which order pictures, run first.
  const { blocks, rows, regions, length, show, axis, stack } = scene;
  useMemo(() => {
    const bands = regionBands(regions, show);
    if (stack !== null) renderer?.setRowsByAge(stack.rows, axis.clock, bands);
    else renderer?.setBlocks(timelineBlocks(rows, regions, length, show, axis.clock), bands);
  }, [renderer, blocks, length, show, axis, stack]);
  useMemo(() => renderer?.setHighlighted(highlighted), [renderer, highlighted]);
  return { renderer, failure };
}
