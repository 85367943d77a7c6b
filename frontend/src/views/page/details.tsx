import type { ComponentChildren, JSX } from "preact";
import { formatBytes, formatCount, formatExact } from "../../base/units";
import { formatTime } from "../../layout/axis";
import type { Api } from "../../payload/api";
import type { Details as BufferDetails } from "../../payload/generated/answers";
import { expansion, rowName, type Rows } from "../../payload/recording/rows";
import { capitalize, useTerms } from "../data/terms";
import { useFetched } from "../data/use_fetched";
import type { AvailableRows } from "../data/use_recording";
import { store, useViewState } from "../state/view_state";
import { CallStack } from "../widgets/call_stack";
import { Drawer, Fact } from "../widgets/drawer";
import {
  isSharedLater,
  lifetimeText,
  liveUntil,
  positionText,
  RowRole,
  SourcePlace,
} from "../widgets/labels";
import { GraphViewerLink } from "../widgets/links";
import { ErrorMessage } from "../widgets/message";
import { Occupants, PlannedBuffers, Sharers } from "./sharers";

interface Props {
  api: Api;
  id: string;
  /** Row number, and its index in `rows`. */
  number: number;
  row: number;
  rows: Rows;
  length: number;
  /** Timestamps of an allocator's positions. */
  times: Float64Array | null;
  /** A single moment: rows have addresses, but no lifetimes and no sharers. */
  moment?: boolean;
}

/** Details of one buffer: the row's values at once; call stack and sharers when they have loaded. */
function Details(props: Props) {
  const { api, id, number, times, moment = false } = props;
  const terms = useTerms();
  const { value, error } = useFetched(`${id} ${number}`, (_, signal) =>
    api.details({ id, row: number }, signal),
  );
  const addressed = times !== null || moment;
  return (
    <Drawer
      title={rowName(props.rows, props.row) || `Unnamed ${terms.item}`}
      label={`Selected ${terms.item}`}
      testid="details"
      onClose={() => store.set({ selected: null })}
    >
      <RowFacts {...props} details={value} />
      {error !== null && <ErrorMessage error={error} />}
      {value === null && error === null && (
        <p class="muted">Reading {addressed ? "the stack" : "stack and sharers"}…</p>
      )}
      {value !== null && (
        <>
          {!addressed && (
            <p class="xprof-links">
              <GraphViewerLink instruction={value.defined.instruction} />
            </p>
          )}
          <CallStack frames={value.stack} />
          {value.freed_stack.length > 0 && <CallStack frames={value.freed_stack} title="Freed at" />}
          {value.planned != null && <PlannedBuffers planned={value.planned} />}
          {!addressed && <Sharers details={value} />}
        </>
      )}
    </Drawer>
  );
}

type FactsProps = Pick<Props, "rows" | "row" | "length" | "times" | "moment"> & {
  /** Null until they have loaded, and for a row under the pointer. */
  details: BufferDetails | null;
};

/** What the columns of a row contain. */
export function RowFacts({ rows, row, length, times, moment = false, details }: FactsProps) {
  const terms = useTerms();
  const padding = rows.size[row] - rows.requested[row];
  const addressed = times !== null || moment;
  return (
    <dl class="facts">
      {(times === null || rows.role[row] !== 0) && (
        <Fact name="Role">
          <RowRole {...{ rows, row }} />
        </Fact>
      )}
      <Fact name="Size">
        <b>{formatBytes(rows.size[row])}</b> <span class="muted">{formatExact(rows.size[row])}</span>
        {rows.charge[row] === 0 && (
          <p class="muted">
            Adds nothing to the live bytes: its memory is counted with another buffer, or not counted.
          </p>
        )}
      </Fact>
      <Fact name={capitalize(terms.requested)}>
        {formatBytes(rows.requested[row])}
        {padding > 0 && (
          <span class="wasteful">
            {` ${formatBytes(padding)} ${terms.excess}, ${expansion(rows, row).toFixed(2)}× expansion`}
          </span>
        )}
      </Fact>
      <Fact name="Shape">
        {rows.shape.at(row) !== "" && (
          <code>
            {times !== null && rows.dtype.at(row)}
            {rows.shape.at(row)}
          </code>
        )}
      </Fact>
      <Fact name={terms.op}>
        {rows.op.at(row) !== "" ? (
          <code>{rows.op.at(row)}</code>
        ) : (
          terms.default_op !== "" && terms.default_op
        )}
      </Fact>
      <Fact name={terms.op_name}>{rows.op_name.at(row) !== "" && <code>{rows.op_name.at(row)}</code>}</Fact>
      {rows.copied.at(row) !== "" && (
        <Fact name="Copy of">
          <code>{rows.copied.at(row)}</code>
        </Fact>
      )}
      <Fact name="Source">
        {rows.source.at(row) !== "" && (
          <code>
            <SourcePlace text={rows.source.at(row)} />
          </code>
        )}
      </Fact>
      {!moment && <Lifetime {...{ rows, row, length, times, details }} />}
      {details?.region != null && details.offset_bytes >= 0 && (
        <Fact name={addressed ? "Address" : "Allocation"}>
          {!addressed &&
            `${details.region.kind} #${details.region.index}, ${formatBytes(details.region.size_bytes)}; at offset `}
          <Address {...{ details, addressed }} />
        </Fact>
      )}
    </dl>
  );
}

/** Place of a row: an offset in its allocation, or an address if regions are numbered by address. */
function Address({ details, addressed }: { details: BufferDetails; addressed: boolean }) {
  const place = details.offset_bytes + (addressed ? (details.region?.index ?? 0) : 0);
  return <code title={formatExact(details.offset_bytes)}>0x{place.toString(16)}</code>;
}

function Lifetime({ rows, row, length, times, details }: Omit<FactsProps, "moment">) {
  const terms = useTerms();
  const place = (position: number, instruction: string | undefined) =>
    position < 0 || position >= length ? (
      <span>
        {positionText(position, length)} the {terms.extent}
      </span>
    ) : (
      <button class="link" title={`Inspect this ${terms.position}`} onClick={() => store.set({ position })}>
        {times !== null && `${formatTime(times[position])}, ${terms.position} `}
        {formatCount(position)}{" "}
        {instruction !== undefined && instruction !== "" && <code>{instruction}</code>}
      </button>
    );
  const held = Math.min(rows.end[row], length) - Math.max(rows.start[row], 0);
  return (
    <>
      <Fact name={times === null ? "Defined at" : "Allocated"}>
        {place(rows.defined[row], details?.defined.instruction)}
      </Fact>
      {times === null && rows.charge[row] > 0 && Math.max(rows.start[row], 0) < rows.defined[row] && (
        <Fact name="Reserved from">
          {place(rows.start[row], undefined)}
          <p class="muted">Counts as live from here, before it is written: pale on the timeline.</p>
        </Fact>
      )}
      {times === null ? (
        <>
          <Fact name="Last used at">{place(rows.last_used[row], details?.last_used.instruction)}</Fact>
          {isSharedLater(rows, row, length) && (
            <Fact name="In use until">
              {place(liveUntil(rows, row, length), undefined)}
              <Occupants details={details} after={rows.last_used[row]} />
            </Fact>
          )}
        </>
      ) : (
        <>
          {rows.end[row] - rows.last_used[row] > 1 && rows.last_used[row] > rows.start[row] && (
            <Fact name="Free requested">{place(rows.last_used[row], undefined)}</Fact>
          )}
          <Fact name="Freed">
            {rows.end[row] >= length ? "not by the end of the recording" : place(rows.end[row], undefined)}
          </Fact>
        </>
      )}
      <Fact name="Lifetime">
        {times !== null && `${lifetimeText(rows, row, times)}, `}
        {formatCount(held)} of {formatCount(length)} {terms.positions}
      </Fact>
    </>
  );
}

interface FrameProps {
  /** Side panel; null if nothing is selected. */
  drawer: JSX.Element | null;
  children: ComponentChildren;
}

/** Page with a side panel for the selected item. */
export function PageFrame({ drawer, children }: FrameProps) {
  return (
    <div class="page">
      <div class="content">{children}</div>
      {drawer}
    </div>
  );
}

interface DrawerProps extends Pick<Props, "api" | "id" | "length" | "times" | "moment"> {
  /** Null until they have loaded. */
  available: AvailableRows | null;
}

/** Return the side panel of the selected buffer; null without one. */
export function useDetails({ available, ...details }: DrawerProps) {
  const selected = useViewState((state) => state.selected);
  const row = available?.indexOf(selected) ?? -1;
  return available === null || row < 0 || selected === null ? null : (
    <Details {...details} number={selected} row={row} rows={available.rows} />
  );
}
