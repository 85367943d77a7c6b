import { useMemo } from "preact/hooks";
import { mapByAddress } from "../../layout/stacking/stacking";
import { store, usePosition, useViewState } from "../state/view_state";
import { TREE_CHARTS, TreeCharts } from "../trees/tree_charts";
import { Choice } from "../widgets/choice";
import { AddressMap } from "./address_map";
import { LiveHeading, type LiveProps, useLiveRows } from "../page/live_rows";

const ADDRESS_MAP = {
  value: "address",
  label: "Address map",
  about: "Segments by address, with their blocks and free parts. The keys [ and ] step through events",
} as const;

/** Charts of what is live at the inspected position, or in the selected range. They need all rows. */
export function Breakdown({ view, available, program }: LiveProps) {
  const wanted = useViewState((state) => state.chart);
  const { rows, regions, complete } = available;
  const placed = view.recording.axis === "TIME" && (regions?.length ?? 0) > 0;
  const chart = wanted === "address" && !placed ? "flame" : wanted;
  const map = useMemo(
    () =>
      chart === "address" && regions !== null ? mapByAddress(view.recording.kind, { rows, regions }) : null,
    [chart, rows, regions, view],
  );
  const position = usePosition(view);
  const of = useLiveRows({ view, available, program });
  const fileName = `${view.recording.title}-${view.recording.memory}-at-${of.first}`;
  return (
    <section aria-label="Breakdown" data-testid="breakdown">
      <header class="section-head">
        <LiveHeading {...{ view, available, program, of }} testid="live-heading" />
        <span class="spacer" />
        <Choice
          label="Chart"
          testid="chart"
          options={placed ? [...TREE_CHARTS, ADDRESS_MAP] : TREE_CHARTS}
          value={chart}
          onPick={(picked) => store.set({ chart: picked })}
        />
      </header>
      {map !== null ? (
        <AddressMap
          {...{ ...map, fileName }}
          position={position}
          length={view.length}
          places={available.places}
          outOfMemory={null}
        />
      ) : (
        <TreeCharts
          {...{ program, fileName }}
          compiled={view.recording.axis === "PROGRAM_ORDER"}
          rows={complete ? rows : null}
          live={of.filtered}
          unexplained={Math.max(of.unexplainedShown, 0)}
        />
      )}
    </section>
  );
}
