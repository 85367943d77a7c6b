import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { blocksOf, regionBands } from "../../layout/timeline_blocks";
import { type Drawn, TimelineRenderer } from "../../render/renderer";
import type { Scene } from "./scene";

export interface Pictures {
  renderer: TimelineRenderer | null;
  /** Why there are no pictures, or null. */
  failure: string | null;
}

/** The painter of a scene: it is given the blocks and what the search lights up, and calls back with each picture. */
export function usePictures(scene: Scene, lit: Uint8Array | null, onDrawn: (drawn: Drawn) => void): Pictures {
  const [renderer, setRenderer] = useState<TimelineRenderer | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const latest = useRef(onDrawn);
  latest.current = onDrawn;
  useEffect(() => {
    const made = new TimelineRenderer((drawn) => latest.current(drawn), setFailure);
    setRenderer(made);
    return () => made.close();
  }, []);
  // Layout effects run before the effects of the charts that order pictures: blocks first, then what to draw of them.
  useLayoutEffect(() => {
    const { rows, regions, length, show } = scene;
    renderer?.setBlocks(blocksOf(rows, regions, length, show), regionBands(regions, show));
  }, [renderer, scene]);
  useLayoutEffect(() => renderer?.setLit(lit), [renderer, lit]);
  return { renderer, failure };
}
