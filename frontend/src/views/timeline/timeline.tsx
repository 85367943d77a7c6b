import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isTyping } from "../../base/input";
import {
  MIN_POSITIONS,
  restoreSpan,
  saveSpan,
  type TimelineBox,
  type View,
  viewAround,
  zoom,
} from "../../layout/axis";
import type { AllocationLayout } from "../../layout/stacking/stacking";
import { prepareSearch, rowTexts } from "../../layout/table/table_filter";
import { findMatches, intersectHighlights, nextMatch } from "../../layout/timeline/search";
import { useDeferred } from "../browser/hooks";
import { useTerms } from "../data/terms";
import { useSearch } from "../data/use_search";
import { SavePicture } from "../drawing/save_picture";
import { type FilteredRows, RowFilterContext } from "../page/row_filter";
import { useDark } from "../state/theme";
import { store, useViewState } from "../state/view_state";
import { drawTimeline } from "./drawing/save_timeline";
import { blockOf, readColors, rowsAcross, type Scene, useRenderer, useScene } from "./drawing/scene";
import { Holes } from "./holes";
import { Minimap } from "./minimap";
import { Plot, type Pointed, PointerText } from "./plot";
import { Toolbar } from "./toolbar";

interface Props extends Omit<Scene, "show" | "holes" | "reserves" | "extent"> {
  /** Whether the rows have their names and times. */
  named: boolean;
  /** Source of the layout: the region filter of a program, or the placement of an allocator's rows. */
  placing: "regions" | AllocationLayout;
  /** Progress of a new layout, 0 to 1; null if none is being computed. */
  busy: number | null;
}

/** Time in which the page shows a letter, in milliseconds. */
const ECHO_MS = 20;

/** Allocation timeline: each buffer is a block, its lifetime along x, its place in memory along y. */
export function Timeline({ named, ...of }: Props) {
  const { rows, regions } = of;
  const wantedRegions = useViewState((state) => state.timeline_regions);
  // All of an allocator's, whose rows are placed in one.
  const show = of.placing === "regions" ? wantedRegions : "all";
  const full = useViewState((state) => state.timeline_only);
  const scene = useScene({
    ...of,
    show,
    holes: of.placing === "address",
    reserves: of.placing === "regions",
  });
  const { view, onView } = useVisiblePart(scene);
  // The letter that was typed is shown first.
  const wanted = useViewState((state) => state.search);
  const typed = useDeferred(named ? wanted : "", ECHO_MS);
  const search = useSearch(typed, rows, rowTexts);
  const matches = useMemo(() => findMatches(rows, regions, show, search), [rows, regions, show, search]);
  const [pointer, setPointer] = useState<Pointed | null>(null);
  const filteredRows = useContext(RowFilterContext);
  const highlighted = useMemo(
    () => intersectHighlights(matches.highlighted, filteredRows.rows),
    [matches, filteredRows],
  );
  const { renderer, failure } = useRenderer(scene, highlighted);
  const dark = useDark();
  const colors = useMemo(() => readColors(dark), [dark]);
  const onMatch = (step: 1 | -1): void => goToMatch(scene, matches.rows, view, onView, step);
  useMatchKeys(onMatch, () => {
    const { search_match: match } = store.get();
    if (match !== null && match < scene.listed) store.set({ selected: match });
  });
  const root = useRef<HTMLDivElement>(null);
  useReveal(scene, filteredRows, onView, () => root.current?.parentElement);
  const shared = { scene, view, onView, renderer, highlighted, colors };
  return (
    <div ref={root} class="timeline" data-testid="timeline">
      <Toolbar
        {...{ matches, onMatch }}
        placing={of.placing}
        busy={of.busy}
        searching={search.typed !== wanted}
        onSearch={() => prepareSearch(rows)}
        onAll={() => onView(scene.extent)}
        onZoom={(factor) => {
          const middle = (view.x[0] + view.x[1]) / 2;
          onView({ ...view, x: zoom(view.x, scene.extent.x, middle, factor, MIN_POSITIONS) });
        }}
      />
      <Plot {...shared} onPointer={setPointer} />
      <footer class="timeline-foot">
        <PointerText scene={scene} at={pointer} full={full} />
        <Minimap {...shared} />
      </footer>
      {scene.holes && <Holes scene={scene} />}
      <EmptyTimeline scene={scene} failure={failure} />
      <SavePicture
        of="allocation timeline"
        fileName="allocation-timeline"
        draw={(format) =>
          renderer === null ? null : drawTimeline({ scene, renderer, highlighted }, format === "png")
        }
      />
    </div>
  );
}

/** Return the view of the page's state, and a setter that waits for the next frame. */
function useVisiblePart(scene: Scene): { view: View; onView: (view: View) => void } {
  const x = useViewState((state) => state.zoom);
  const y = useViewState((state) => state.timeline_zoom);
  const { axis, extent } = scene;
  const view = useMemo(() => ({ x: axis.fromSaved(x), y: restoreSpan(y, extent.y) }), [x, y, axis, extent]);
  const next = useRef<View | null>(null);
  const onView = (wanted: View): void => {
    // Pointer events are more frequent than frames; the last one in a frame wins.
    if (next.current === null)
      requestAnimationFrame(() => {
        const { x: along, y: up } = next.current ?? view;
        next.current = null;
        store.set({ zoom: axis.toSaved(along), timeline_zoom: saveSpan(up, extent.y) });
      });
    next.current = wanted;
  };
  return { view, onView };
}

/** Go to the next match; without a search, to the next block at the inspected position. */
function goToMatch(
  scene: Scene,
  found: () => Uint32Array,
  view: View,
  onView: (view: View) => void,
  step: 1 | -1,
): void {
  const { search, search_match: match, position } = store.get();
  const across = (): number[] =>
    rowsAcross(scene, position ?? scene.peak).filter((row) => row < scene.listed);
  const rows = search === "" ? Uint32Array.from(across()) : found();
  const definedOf = (row: number): number => scene.rows.defined[row];
  const from = search === "" ? -Infinity : scene.axis.positionAt(view.x[0]);
  const next = nextMatch(rows, match, step, definedOf, from);
  store.set({ search_match: next });
  const box = blockOf(scene, next);
  if (box !== null && search !== "") onView(viewAround(box, scene.extent));
}

/** Handle n and N, and Enter for the current match, wherever the focus is, except on controls and while typing. */
function useMatchKeys(onMatch: (step: 1 | -1) => void, onPick: () => void): void {
  const latest = useRef({ onMatch, onPick });
  latest.current = { onMatch, onPick };
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "n") latest.current.onMatch(1);
      else if (event.key === "N") latest.current.onMatch(-1);
      else if (event.key === "Enter" && document.activeElement?.matches("body, main") === true)
        latest.current.onPick();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}

/** Zoom to the rows of a new filter that lists rows, and scroll to them: advice is about a few of many. */
function useReveal(
  scene: Scene,
  { rows, listsRows = false }: FilteredRows,
  onView: (view: View) => void,
  frame: () => Element | null | undefined,
): void {
  const shown = useRef(rows);
  useEffect(() => {
    if (shown.current === rows) return;
    const box = rows === null || !listsRows ? null : boxAround(scene, rows);
    if (box === null && rows !== null && listsRows && scene.reserves && scene.show === "temp") {
      // None is a temporary: the next scene has them.
      store.set({ timeline_regions: "all", timeline_zoom: null });
      return;
    }
    shown.current = rows;
    if (box === null) return;
    onView(viewAround(box, scene.extent));
    frame()?.scrollIntoView({ block: "nearest" });
  }, [rows, scene]);
}

/** Return the box around the blocks of some rows; null if none of them has a block. */
function boxAround(scene: Scene, rows: Uint8Array): TimelineBox | null {
  let around = null as TimelineBox | null;
  for (let row = 0; row < rows.length; row++) {
    const box = rows[row] === 0 ? null : blockOf(scene, row);
    if (box === null) continue;
    around = {
      start: Math.min(box.start, around?.start ?? Infinity),
      end: Math.max(box.end, around?.end ?? -Infinity),
      bottom: Math.min(box.bottom, around?.bottom ?? Infinity),
      top: Math.max(box.top, around?.top ?? -Infinity),
    };
  }
  return around;
}

/** Message in place of a picture. */
function EmptyTimeline({ scene, failure }: { scene: Scene; failure: string | null }) {
  const terms = useTerms();
  if (failure !== null) return <p class="timeline-nothing">The timeline cannot be drawn: {failure}.</p>;
  if (scene.rows.length === 0)
    return (
      <p class="timeline-nothing">
        This {terms.extent} has no {terms.items} in this memory.
      </p>
    );
  for (let region = 0; region < scene.regions.length; region++)
    if (scene.show === "all" || scene.regions.temporary[region] !== 0) return null;
  return (
    <p class="timeline-nothing">
      This program has no temporaries in this memory. Choose “All memory” to see what it holds.
    </p>
  );
}
