import { formatCount, formatShare } from "../../base/units";
import type { AllocationLayout } from "../../layout/stacking/stacking";
import type { TimelineMatches } from "../../layout/timeline/search";
import { FullWindowIcon } from "../browser/full_window";
import { store, useViewState } from "../state/view_state";
import { ButtonGroup, Select } from "../widgets/choice";

interface Props {
  placing: "regions" | AllocationLayout;
  /** Same as in Timeline. */
  busy: number | null;
  /** Matches of the last search that was answered, and whether another one is still running. */
  matches: TimelineMatches;
  searching: boolean;
  /** The user is about to type a search. */
  onSearch: () => void;
  onMatch: (step: 1 | -1) => void;
  onZoom: (factor: number) => void;
  onAll: () => void;
}

/** Controls of the timeline, in the toolbar of the frame. */
export function Toolbar(props: Props) {
  const { placing, busy, onZoom, onAll } = props;
  const full = useViewState((state) => state.timeline_only);
  const show = useViewState((state) => state.timeline_regions);
  const layout = useViewState((state) => state.timeline_layout);
  return (
    <div class="frame-tools">
      {busy !== null && (
        <span class="muted" role="status">
          placing {formatShare(busy, 1)}
        </span>
      )}
      {placing === "regions" ? (
        <Select
          label="Blocks"
          testid="timeline-regions"
          options={REGIONS}
          value={show}
          onPick={(picked) => store.set({ timeline_regions: picked, timeline_zoom: null })}
        />
      ) : (
        <Select
          label="Blocks"
          testid="timeline-layout"
          options={LAYOUTS}
          value={layout}
          onPick={(picked) => store.set({ timeline_layout: picked, timeline_zoom: null })}
        />
      )}
      <Search {...props} />
      <ButtonGroup label="Zoom">
        <button aria-label="Zoom out" title="Zoom out (−)" onClick={() => onZoom(2)}>
          −
        </button>
        <button aria-label="Zoom in" title="Zoom in (+)" onClick={() => onZoom(0.5)}>
          +
        </button>
        <button data-testid="timeline-all" title="Reset zoom (0)" onClick={onAll}>
          All
        </button>
      </ButtonGroup>
      <button
        data-testid="timeline-fullscreen"
        aria-pressed={full}
        aria-label="Full window"
        title="Charts in the full window: on, off ( f )"
        onClick={() => store.set({ timeline_only: !full })}
      >
        <FullWindowIcon />
      </button>
    </div>
  );
}

const REGIONS = [
  { value: "temp", label: "Temporaries", about: "Memory that the program uses for a part of its run" },
  { value: "all", label: "All memory", about: "Parameters, outputs and constants too" },
] as const;

const LAYOUTS = [
  {
    value: "age",
    label: "By age",
    about:
      "Oldest at the bottom, without gaps: blocks move down when one below is freed, so the top edge is the " +
      "memory in use. A pixel with several events shows the largest",
  },
  {
    value: "stacked",
    label: "Packed",
    about:
      "Each block at a fixed height, in the smallest gap that fits, otherwise on top: " +
      "the top edge is not the memory in use",
  },
  {
    value: "address",
    label: "By address",
    about: "Blocks at their addresses, without the ranges that no allocation of the profile uses",
  },
] as const;

function Search({ matches, searching, onSearch, onMatch }: Props) {
  const search = useViewState((state) => state.search);
  const match = useViewState((state) => state.search_match);
  const none = matches.count === 0;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    onMatch(event.shiftKey ? -1 : 1);
  };
  return (
    <span class="timeline-search">
      <input
        type="search"
        data-testid="timeline-search"
        aria-label="Search buffers by text or regular expression"
        placeholder="Text or regex"
        spellcheck={false}
        value={search}
        onFocus={onSearch}
        onInput={(event) => store.set({ search: event.currentTarget.value, search_match: null })}
        onKeyDown={onKeyDown}
      />
      <button
        aria-label="Previous match"
        title="Previous match (N)"
        disabled={none}
        onClick={() => onMatch(-1)}
      >
        ‹
      </button>
      <button aria-label="Next match" title="Next match (n)" disabled={none} onClick={() => onMatch(1)}>
        ›
      </button>
      <span
        class="muted count"
        role="status"
        aria-busy={searching}
        data-testid="timeline-matches"
        title={matches.error ?? ""}
      >
        {search === "" || matches.highlighted === null ? "" : countOf(matches, match)}
      </span>
    </span>
  );
}

function countOf({ count, rows, hidden }: TimelineMatches, match: number | null): string {
  const beside = hidden === 0 ? "" : `, ${formatCount(hidden)} not drawn`;
  const at = match === null ? -1 : rows().indexOf(match);
  const total = formatCount(count);
  return at >= 0 ? `${formatCount(at + 1)} of ${total}${beside}` : `${total} found${beside}`;
}
