import type { JSX } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";
import { formatCounted } from "../../base/units";
import { useFullWindow } from "../browser/full_window";
import { PrintingContext } from "../browser/printing";

interface TableHeadProps<Key extends string> {
  columns: readonly { key: Key; heading: string; about: string; numeric: boolean }[];
  template: string;
  sort: { key: Key; descending: boolean };
  onSort: (sort: { key: Key; descending: boolean }) => void;
}

/** Headings that sort: numbers largest first, text alphabetically. */
export function TableHead<Key extends string>({ columns, template, sort, onSort }: TableHeadProps<Key>) {
  return (
    <div class="table-head" role="row" style={{ gridTemplateColumns: template }}>
      {columns.map(({ key, heading, about, numeric }) => {
        const sorted = sort.key === key;
        return (
          <div
            key={key}
            role="columnheader"
            aria-sort={!sorted ? "none" : sort.descending ? "descending" : "ascending"}
          >
            <button
              title={about}
              class={numeric ? "numeric" : ""}
              onClick={() => onSort({ key, descending: sorted ? !sort.descending : numeric })}
            >
              {heading}
              {sorted && <span aria-hidden="true">{sort.descending ? " ▾" : " ▴"}</span>}
            </button>
          </div>
        );
      })}
    </div>
  );
}

const LINE_HEIGHT = 26;
/** Lines drawn above and below the visible ones, so that fast scrolling shows no blanks. */
const MARGIN_LINES = 8;
/** Lines exchanged at a time, so that most scroll events change nothing. */
const STEP = 4;
const MAX_VISIBLE_LINES = 20;
/** Height of what is above and below the lines in the full window. */
const AROUND = 170;
/** Lines on paper: some pages. */
const MAX_PRINTED_LINES = 2000;

export interface LinesProps {
  count: number;
  /** Line that keys start from, scrolled into view when it changes; -1 for none. */
  at: number;
  empty: string;
  label: string;
  /** ARIA role: a tree grid, or plain lines. */
  role?: "grid" | "treegrid";
  head: JSX.Element;
  /** `id` must be the row's element id, which the list names as the active one. */
  line: (index: number, id: string) => JSX.Element;
  /** Movement by arrow and paging keys, in lines. */
  onStep: (by: number) => void;
  /** Actions of further keys on the line that keys start from. */
  keys?: LineKeys;
}

/** Actions on a line, by key. */
export type LineKeys = Partial<Record<string, (line: number) => void>>;

/** List of lines of equal height; only the visible ones are in the document. */
export function VirtualLines(props: LinesProps) {
  const { count, at, empty, label, head, line, onStep, keys = {} } = props;
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const [scrolled, setScrolled] = useState(0);
  const most = useFullWindow() ? Math.floor((window.innerHeight - AROUND) / LINE_HEIGHT) : MAX_VISIBLE_LINES;
  const inSight = Math.min(most, Math.max(count, 4));

  useEffect(() => {
    const node = scroller.current;
    if (node === null || at < 0) return;
    const above = at * LINE_HEIGHT;
    if (above < node.scrollTop) node.scrollTop = above;
    else if (above + 2 * LINE_HEIGHT > node.scrollTop + node.clientHeight)
      node.scrollTop = above + 2 * LINE_HEIGHT - node.clientHeight;
  }, [at]);

  const printing = useContext(PrintingContext);
  const printed = Math.min(count, MAX_PRINTED_LINES);
  const pool = printing ? Math.max(printed, 1) : inSight + STEP + 2 * MARGIN_LINES;
  const first = printing ? 0 : Math.max(Math.min(scrolled, count - inSight) - MARGIN_LINES, 0);
  const last = Math.min(first + pool, count);
  const steps: Partial<Record<string, number>> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: inSight,
    PageUp: -inSight,
    Home: -Infinity,
    End: Infinity,
  };
  return (
    <div
      ref={scroller}
      class="virtual"
      role={props.role ?? "grid"}
      aria-label={label}
      aria-rowcount={count}
      aria-activedescendant={first <= at && at < last ? `${id}-${at}` : undefined}
      tabindex={0}
      style={{ height: printing ? "auto" : `${(inSight + 1) * LINE_HEIGHT + 12}px` }}
      onScroll={(event) => setScrolled(Math.floor(event.currentTarget.scrollTop / LINE_HEIGHT / STEP) * STEP)}
      onKeyDown={(event) => {
        if (event.target !== event.currentTarget) return;
        const by = steps[event.key];
        const act = keys[event.key];
        if (by !== undefined) onStep(by);
        else if (act !== undefined && at >= 0 && at < count) act(at);
        else return;
        event.preventDefault();
      }}
    >
      {head}
      {count === 0 && <p class="muted virtual-empty">{empty}</p>}
      <div class="virtual-body" style={{ height: `${(printing ? printed : count) * LINE_HEIGHT}px` }}>
        {Array.from({ length: Math.max(last - first, 0) }, (_, i) => (
          // A line that leaves at one end is reused at the other: cheaper than a new element.
          <div
            key={(first + i) % pool}
            class="virtual-line"
            style={{ transform: `translateY(${(first + i) * LINE_HEIGHT}px)`, height: `${LINE_HEIGHT}px` }}
          >
            {line(first + i, `${id}-${first + i}`)}
          </div>
        ))}
      </div>
      {printing && printed < count && (
        <p class="muted">{formatCounted(count - printed, "more line")}; a saved CSV has all of them.</p>
      )}
    </div>
  );
}
