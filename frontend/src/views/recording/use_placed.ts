import { useEffect, useState } from "preact/hooks";
import { type Layout, livesOf, placedRows } from "../../layout/stacking";
import type { Everything } from "../../payload/recording";
import { startPlacing } from "../../render/placing";

export interface Placement {
  /** Everything, its rows where the layout has them; null until the first layout is done. */
  placed: Everything | null;
  /** That layout. */
  layout: Layout;
  /** Share of the rows that are placed, 0 to 1. */
  share: number;
  failure: string | null;
}

/** An allocator's rows at their places on the y axis. A new layout is shown when it is done; until then the last one. */
export function usePlaced(everything: Everything | null, layout: Layout | null): Placement {
  const [state, setState] = useState<Placement & { of: Everything | null }>({ ...NOTHING, of: null });
  useEffect(() => {
    if (everything === null || layout === null) return;
    const { rows, regions } = everything;
    if (layout === "address" && regions.length > 1) {
      // Segments are stacked as they came: what is free in them is as much a part of the picture.
      setState({ of: everything, placed: everything, layout, share: 1, failure: null });
      return;
    }
    setState((last) => (last.of === everything ? { ...last, share: 0 } : { ...NOTHING, of: everything }));
    return startPlacing(
      { layout, lives: livesOf(rows, regions) },
      {
        share: (share) => setState((last) => ({ ...last, share })),
        placed: (placing) =>
          setState({
            of: everything,
            placed: { ...everything, ...placedRows(rows, layout, placing) },
            layout,
            share: 1,
            failure: null,
          }),
        failed: (failure) => setState({ ...NOTHING, of: everything, failure }),
      },
    );
  }, [everything, layout]);
  if (layout === null) return { ...NOTHING, placed: everything, share: 1 };
  return state.of === everything ? state : NOTHING;
}

const NOTHING: Placement = { placed: null, layout: "stacked", share: 0, failure: null };
