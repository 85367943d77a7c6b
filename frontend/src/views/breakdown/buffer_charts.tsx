import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatBytes, formatCount, formatShare } from "../../base/units";
import type { BarOrder } from "../../layout/usage/buffer_bar";
import { bufferAt, bufferBar } from "../../layout/usage/buffer_bar";
import { ROLES } from "../../payload/generated/constants";
import type { ViewState } from "../state/view_state";
import { useTerms, type Terms } from "../data/terms";
import { useWidth } from "../browser/use_width";
import { drawBar } from "./bar_canvas";
import type { AvailableRows } from "../data/available_rows";
import { Tooltip } from "../widgets/tooltip";
import { pageColors } from "../drawing/page_colors";

const HEIGHT = 34;

const BARS: readonly { order: BarOrder; label: (terms: Terms) => string; about: string }[] = [
  { order: "program", label: (terms: Terms) => `By ${terms.order}`, about: "first on the left" },
  { order: "size", label: () => "By size", about: "largest on the left" },
  {
    order: "padding",
    label: (terms: Terms) => `By ${terms.excess}`,
    about: "bytes of each beyond the requested ones, most on the left",
  },
];

interface Props {
  available: AvailableRows;
  live: Uint32Array;
  store: Store<ViewState>;
  dark: boolean;
}

/** Bars of the buffers live at the inspected position: in program order, by size and by padding. */
export function BufferCharts(props: Props): JSX.Element {
  const { rows } = props.available;
  // By recording, not by position: stepping through positions must not move the page.
  const padded = useMemo(() => rows.charge.some((_, row) => rows.charge[row] > rows.unpadded[row]), [rows]);
  return (
    <div class="buffer-charts">
      {BARS.filter(({ order }) => order !== "padding" || padded).map((bar) => (
        <BufferBar key={bar.order} {...props} {...bar} />
      ))}
    </div>
  );
}

function BufferBar(props: Props & (typeof BARS)[number]): JSX.Element {
  const { available, live, store, dark, order, about } = props;
  const { rows } = available;
  const terms = useTerms();
  const label = props.label(terms);
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(host);
  const selected = available.indexOf(useStore(store, (state) => state.selected));
  const hovered = available.indexOf(useStore(store, (state) => state.hovered));
  const bar = useMemo(() => bufferBar(rows, live, order), [rows, live, order]);
  const total = bar.edges[bar.rows.length];
  const [pointer, setPointer] = useState<number | null>(null);

  useLayoutEffect(() => {
    if (canvas.current === null || width === 0) return;
    drawBar(canvas.current, { bar, rows, selected, hovered, dark, width, height: HEIGHT }, pageColors());
  }, [bar, rows, selected, hovered, dark, width]);

  const placeAt = (event: MouseEvent): number => bufferAt(bar, (event.offsetX / width) * total);
  const point = (event: MouseEvent): void => {
    const place = placeAt(event);
    setPointer(place < 0 ? null : event.offsetX);
    store.set({ hovered: place < 0 ? null : available.numberOf(bar.rows[place]) });
  };
  const leave = (): void => {
    setPointer(null);
    store.set({ hovered: null });
  };
  const step = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || bar.rows.length === 0) return;
    event.preventDefault();
    const place = Math.min(Math.max(bar.rows.indexOf(selected) + by, 0), bar.rows.length - 1);
    store.set({ selected: available.numberOf(bar.rows[place]) });
  };

  return (
    <div class="buffer-bar">
      <header>
        <h3>{label}</h3>
        <span class="muted">{total > 0 ? `${about}; ${formatBytes(total)}` : `no ${terms.excess} here`}</span>
      </header>
      <div
        ref={host}
        class={total > 0 ? "buffer-bar-host" : "buffer-bar-host empty"}
        tabindex={0}
        role="application"
        aria-label={`${label}: ${formatCount(bar.rows.length)} ${terms.items}. Left and right arrows select the next one.`}
        data-testid={`bar-${order}`}
        style={{ height: `${HEIGHT}px` }}
        onKeyDown={step}
      >
        <canvas
          ref={canvas}
          onMouseMove={point}
          onMouseLeave={leave}
          onClick={(event) => {
            const place = placeAt(event);
            if (place >= 0) store.set({ selected: available.numberOf(bar.rows[place]) });
          }}
        />
        {pointer !== null && hovered >= 0 && (
          <Tooltip x={pointer} y={HEIGHT + 6} width={width}>
            <b>{rows.name.at(hovered) || `unnamed ${terms.item}`}</b>
            {rows.op_name.at(hovered) !== "" && <span>{rows.op_name.at(hovered)}</span>}
            <span>
              {formatBytes(rows.size[hovered])}, {formatShare(rows.charge[hovered], total)} of this bar
              {rows.role[hovered] !== 0 && `, ${ROLES[rows.role[hovered]]}`}
            </span>
            <span class="muted">{rows.shape.at(hovered)}</span>
          </Tooltip>
        )}
      </div>
    </div>
  );
}
