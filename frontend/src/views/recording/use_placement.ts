import { useEffect, useState } from "preact/hooks";
import { rowsByAge, AgeStack } from "../../layout/stacking/age_stack";
import {
  regionsAreReserved,
  type AllocationLayout,
  rowLifetimes,
  applyPlacement,
} from "../../layout/stacking/stacking";
import type { RecordingData, FirstView } from "../../payload/recording/recording";
import { appendUnexplained } from "../../layout/stacking/unexplained_rows";
import { startPlacement } from "../../render/workers/placement";
import { useTerms } from "../data/terms";

export interface Placement {
  /** All rows, placed by the layout, followed by blocks for live bytes without a row; null until placed. */
  placed: RecordingData | null;
  /** Layout of `placed`. */
  layout: AllocationLayout;
  /** Stack of rows by age; null in other layouts. */
  stack: AgeStack | null;
  /** Progress: share of rows that are placed, 0 to 1. */
  share: number;
  failure: string | null;
}

/** Place an allocator's rows on the y axis. A new layout replaces the previous one when it is complete. */
export function usePlacement(
  everything: RecordingData | null,
  layout: AllocationLayout | null,
  { length: positions, recording: { kind } }: FirstView,
): Placement {
  const [state, setState] = useState<Placement & { of: RecordingData | null }>({ ...NOT_PLACED, of: null });
  const { unexplained: rest } = useTerms();
  useEffect(() => {
    if (everything === null || layout === null) return;
    const { regions, program } = everything;
    const rows = layout === "address" ? everything.rows : appendUnexplained(everything.rows, program, rest);
    if (layout === "address" && regionsAreReserved(kind, regions)) {
      // Segments are stacked in file order, as their free parts belong to the picture too.
      setState({ ...PLACED, of: everything, placed: everything, layout });
      return;
    }
    if (layout === "age") {
      const stack = new AgeStack(rowsByAge(rows, positions));
      const placed = { ...everything, ...applyPlacement(rows, layout, stack.placement(rows.length)) };
      setState({ ...PLACED, of: everything, placed, layout, stack });
      return;
    }
    setState((last) => (last.of === everything ? { ...last, share: 0 } : { ...NOT_PLACED, of: everything }));
    return startPlacement(
      { layout, lifetimes: rowLifetimes(rows, regions) },
      {
        share: (share) => setState((last) => ({ ...last, share })),
        placed: (placing) =>
          setState({
            ...PLACED,
            of: everything,
            placed: { ...everything, ...applyPlacement(rows, layout, placing) },
            layout,
          }),
        failed: (failure) => setState({ ...NOT_PLACED, of: everything, failure }),
      },
    );
  }, [everything, layout, positions, kind, rest]);
  if (layout === null) return { ...NOT_PLACED, placed: everything, share: 1 };
  return state.of === everything ? state : NOT_PLACED;
}

const NOT_PLACED: Placement = { placed: null, layout: "stacked", stack: null, share: 0, failure: null };
const PLACED = { ...NOT_PLACED, share: 1 };
