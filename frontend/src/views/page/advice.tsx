import { Fragment } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import { formatBytes, formatCounted, formatExact, formatShare } from "../../base/units";
import { fieldTexts, matchingRows, rowsCsv, sortRows } from "../../layout/table/fields";
import { type Sorting, writeFilter } from "../../layout/url_values";
import type { Advice, AdviceList, FitsWith } from "../../payload/generated/answers";
import { savingText } from "../../payload/responses/names";
import { useCopying } from "../browser/export";
import { PrintingContext } from "../browser/printing";
import { useTerms } from "../data/terms";
import type { Fetched } from "../data/use_fetched";
import { useSearch } from "../data/use_search";
import { store, useViewState } from "../state/view_state";
import { Bytes, CellLink, type Column, column, savedColumn } from "../tables/columns";
import { splitConstant, stepLine, TableRow } from "../tables/data_table";
import { TableToolbar } from "../tables/table_toolbar";
import { TableHead } from "../tables/virtual_lines";
import { ErrorMessage } from "../widgets/message";

/** Changes that lower the peak: what each saves and takes, and on expansion its reason and its code. */
export function AdvicePanel({ advice: { value, error }, id }: { advice: Fetched<AdviceList>; id: string }) {
  return (
    <section aria-label="Advice" data-testid="advice" aria-busy={value === null && error === null}>
      {error !== null && <ErrorMessage error={error} />}
      {value === null && error === null && <p class="muted">Replaying the peak without what could go…</p>}
      {value !== null && value.advice.length === 0 && (
        <p class="muted">No known change would lower this peak.</p>
      )}
      {value !== null && value.advice.length > 0 && <AdviceTable key={id} list={value} name={id} />}
    </section>
  );
}

const IN_ORDER: Sorting = { key: "", descending: false };

function adviceColumns({ advice, fits_with: needed }: AdviceList): Column<Advice>[] {
  return [
    column("text", "title", "Change", "Click or Enter: the reason and the code", ({ title }) => title, {
      csv: "change",
      track: "minmax(220px, 2fr)",
      cell: ({ title }) => <CellLink title={title}>{title}</CellLink>,
    }),
    savedColumn("kind", ({ kind }) => kind),
    column(
      "bytes",
      "saving",
      "Saving",
      "What the change saves by itself: as far as is safe to count on, and at most. Savings do not add up",
      ({ saving_bytes }) => saving_bytes,
      { csv: "saving_bytes", track: "minmax(90px, 250px)", cell: (piece) => <Saving piece={piece} /> },
    ),
    savedColumn("saving_at_most_bytes", ({ saving_at_most_bytes: most }) => most),
    savedColumn("saving_of", ({ saving_of }) => saving_of),
    savedColumn("evidence", ({ evidence }) => evidence),
    column(
      "bytes",
      "after",
      "New peak",
      "The peak with this change alone, or what is reserved",
      ({ after_bytes }) => after_bytes,
      {
        csv: "after_bytes",
        track: "minmax(80px, 140px)",
        cell: ({ after_bytes: after, saving_of }) => (
          <Bytes
            of={after}
            text={saving_of === "reserved" ? `${formatBytes(after)} reserved` : formatBytes(after)}
          />
        ),
      },
    ),
    column(
      "text",
      "fits",
      "Fits?",
      "Whether the program fits its memory with this change alone",
      ({ fits }) => (fits === null ? null : fits ? "yes" : "no"),
      // Where it fits already, each change leaves it so.
      {
        track: "60px",
        constant: needed === null || advice.every(({ fits }) => fits === null) ? "" : null,
      },
    ),
    column("text", "cost", "Cost", "What the change costs in each step", ({ cost }) => cost, {
      track: "minmax(100px, .7fr)",
    }),
    column(
      "text",
      "step",
      "Step (estimated)",
      "By how much longer a step takes, by the estimated times of instructions",
      stepText,
      {
        csv: "step_time",
        track: "minmax(110px, .7fr)",
        constant: advice.every((piece) => stepText(piece) === null) ? "" : null,
        order: ({ time_ratio: ratio, longer }) =>
          ratio !== null ? ratio - 1 : longer === null ? null : (longer.least + longer.most) / 2,
      },
    ),
    column("text", "effort", "Effort", "The work of making the change", ({ effort }) => effort, {
      track: "minmax(100px, .6fr)",
    }),
    savedColumn("sentence", ({ sentence }) => sentence),
    savedColumn("code", ({ change }) => change),
  ];
}

/** The estimated time of a step: "1.2 times, compiled", or "\u22125% to +18%", as simulated; null if unknown. */
function stepText({ time_ratio: ratio, longer }: Advice): string | null {
  if (ratio !== null) return `${ratio} times, compiled`;
  if (longer === null) return null;
  const [least, most] = [longer.least, longer.most].map(signedShare);
  return least === most ? least : `${least} to ${most}`;
}

function signedShare(share: number): string {
  const percent = Math.round(100 * share);
  return `${percent > 0 ? "+" : percent < 0 ? "\u2212" : ""}${Math.abs(percent)}%`;
}

function Saving({ piece }: { piece: Advice }) {
  const { saving_bytes: safe, saving_at_most_bytes: most, before_bytes: before } = piece;
  const exact = safe === most ? formatExact(safe) : `${formatExact(safe)}, up to ${formatExact(most)}`;
  return (
    <span title={`${exact}: ${formatShare(safe, before)} of the ${piece.saving_of}`} data-testid="saving">
      {piece.evidence !== "simulated" && <span class="muted">{piece.evidence} </span>}
      {savingText(piece)}
    </span>
  );
}

/** Lines are few, and open ones are of any height, so all are in the document. */
function AdviceTable({ list, name }: { list: AdviceList; name: string }) {
  const { advice, fits_with: needed } = list;
  const [typed, setTyped] = useState("");
  const [sort, setSort] = useState(IN_ORDER);
  const [at, setAt] = useState(-1);
  const [open, setOpen] = useState<ReadonlySet<Advice>>(new Set());
  const columns = useMemo(() => adviceColumns(list), [list]);
  const { shown } = splitConstant(columns);
  const template = shown.map(({ track }) => track).join(" ");
  const source = useMemo(() => ({ texts: (row: Advice) => fieldTexts(columns, row) }), [columns]);
  const search = useSearch(typed, source, ({ texts }) => advice.flatMap(texts));
  const { rows, errors } = matchingRows(advice, source, search, "");
  const by = columns.find(({ key }) => key === sort.key);
  const lines = by === undefined ? rows : sortRows(rows, by, sort.descending);
  const printing = useContext(PrintingContext);
  const toggle = (piece: Advice): void => {
    const next = new Set(open);
    if (!next.delete(piece)) next.add(piece);
    setOpen(next);
  };
  const steps: Partial<Record<string, number>> = {
    ArrowDown: 1,
    ArrowUp: -1,
    Home: -Infinity,
    End: Infinity,
  };
  return (
    <>
      <TableToolbar
        {...{ errors, search: typed, onSearch: setTyped, size: "", onSize: null }}
        summary={`each change on its own, against the peak of ${formatBytes(list.peak_bytes)}`}
        csv={() => rowsCsv(lines, columns)}
        fileName={`${name.replaceAll(/[^\w.-]+/g, "_")}_advice.csv`}
      />
      {needed !== null && (
        <FittingSet list={list} needed={needed} onOpen={(pieces) => setOpen(new Set(pieces))} />
      )}
      <div
        class="advice-table"
        role="grid"
        aria-label="Changes"
        aria-rowcount={lines.length}
        aria-activedescendant={at >= 0 && at < lines.length ? `advice-${at}` : undefined}
        tabindex={0}
        onKeyDown={(event) => {
          if (event.target !== event.currentTarget) return;
          const step = steps[event.key];
          if (step !== undefined) setAt(stepLine(at, step, lines.length));
          else if (event.key === "Enter" && at in lines) toggle(lines[at]);
          else return;
          event.preventDefault();
        }}
      >
        <TableHead columns={shown} {...{ template, sort, onSort: setSort }} />
        {lines.length === 0 && <p class="muted virtual-empty">No change matches the filter.</p>}
        {lines.map((piece, i) => (
          <Fragment key={`${piece.kind} ${piece.title}`}>
            <TableRow
              id={`advice-${i}`}
              testid="advice-piece"
              columns={shown}
              row={piece}
              template={template}
              selected={i === at}
              look={open.has(piece) ? "open" : ""}
              onPick={() => {
                setAt(i);
                toggle(piece);
              }}
            />
            {(open.has(piece) || printing) && <Detail piece={piece} />}
          </Fragment>
        ))}
      </div>
    </>
  );
}

/** First line where the program does not fit: the changes with which it does, simulated together. */
function FittingSet(props: { list: AdviceList; needed: FitsWith; onOpen: (pieces: Advice[]) => void }) {
  const { list, needed, onOpen } = props;
  const pieces = needed.pieces.map((number) => list.advice[number]);
  const limit = list.limit_bytes === null ? "" : ` of ${formatBytes(list.limit_bytes, 4)}`;
  const together = pieces.length > 1 ? " together" : "";
  return (
    <p class={needed.fits ? "advice-set" : "advice-set lacking"} data-testid="fits-with">
      <b>{needed.fits ? "Fits with" : "Does not fit even with"}</b>{" "}
      <button class="link" title="Show the reason and the code of each" onClick={() => onOpen(pieces)}>
        {pieces.map(({ title }) => title).join(" + ")}
      </button>
      <span title={formatExact(needed.after_bytes)}>
        : {formatBytes(needed.after_bytes, 4)}
        {limit}
        {together}, {needed.evidence}
      </span>
    </p>
  );
}

interface PieceProps {
  piece: Advice;
}

/** The reason for a change, its code, and its buffers. */
function Detail({ piece }: PieceProps) {
  return (
    <div class="advice-detail" role="row" data-testid="advice-detail">
      <div role="gridcell">
        <p>{piece.sentence}</p>
        {piece.change !== "" && <Change code={piece.change} />}
        <Buffers piece={piece} />
      </div>
    </div>
  );
}

function Change({ code }: { code: string }) {
  const [said, copy] = useCopying();
  return (
    <div class="advice-change">
      <code>{code}</code>
      <button data-testid="copy-change" onClick={() => copy(code)}>
        {said || "Copy"}
      </button>
    </div>
  );
}

/** Restrict all charts to the buffers of the advice; select a single one. */
function Buffers({ piece }: PieceProps) {
  const { rows: ranges, rows_total: count, bytes } = piece;
  const terms = useTerms();
  const text = useMemo(() => writeFilter({ kind: "rows", ranges }), [ranges]);
  const on = useViewState((state) => state.row_filter === text);
  if (count === 0) return null;
  const show = (): void => {
    store.set({ row_filter: on ? "" : text });
    if (!on && count === 1) store.set({ selected: ranges[0][0] });
  };
  return (
    <p>
      <button data-testid="advice-rows" aria-pressed={on} onClick={show}>
        {on
          ? "Clear the filter"
          : `Show ${count === 1 ? `the ${terms.item}` : formatCounted(count, terms.item, terms.items)}`}
      </button>{" "}
      <span class="muted" title={formatExact(bytes)}>
        {formatBytes(bytes)}
      </span>
    </p>
  );
}
