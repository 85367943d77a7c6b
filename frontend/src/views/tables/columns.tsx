import type { ComponentChildren } from "preact";
import { formatBytes, formatCount, formatExact, formatSigned } from "../../base/units";
import type { Field, Value } from "../../layout/table/fields";
import { Middle } from "../widgets/labels";

/** Heading of a column, which sorts the rows. */
export interface Heading<Key extends string = string> {
  key: Key;
  heading: string;
  about: string;
  /** Track of the CSS grid of every line; empty for a column that is saved only. */
  track: string;
  /** Numbers are aligned to the right, and sorted largest first. */
  numeric: boolean;
}

/** A column of a table: how its values are read, shown, sorted, searched for and saved. */
export interface Column<Row> extends Field<Row>, Heading {
  cell: (row: Row) => ComponentChildren;
  /** Text of all rows, which replaces the column; empty if there is nothing to show. Null: rows differ. */
  constant?: string | null;
}

export const DASH = <span class="muted">–</span>;

/** Bytes as text, with the exact figure in a tooltip. */
export function Bytes({ of, text = formatBytes(of) }: { of: number; text?: string }) {
  return <span title={formatExact(of)}>{text}</span>;
}

/** A path, shortened at the start because paths differ at the end. */
export function Path({ text }: { text: string }) {
  return (
    <span class="from-end" title={text}>
      <bdi>{text}</bdi>
    </span>
  );
}

/** Above 90%, fragmentation alone can cause an out-of-memory error. */
const TIGHT_SHARE = 0.9;

/** Bar of the share of a memory that is used, more than 1 if there is too little of it, behind a text. */
export function Room({ used, title, text }: { used: number | null; title: string; text: string }) {
  if (used === null) return DASH;
  const level = used > 1 ? "lacking" : used > TIGHT_SHARE ? "tight" : "";
  return (
    <span class={`room ${level}`} style={{ "--used": `${100 * Math.min(used, 1)}%` }} title={title}>
      {text}
    </span>
  );
}

/** Button in a row for what a click on the row does, or for something else if it has an `onClick`. */
export function CellLink(props: {
  children: ComponentChildren;
  title?: string;
  testid?: string;
  onClick?: () => void;
}) {
  const { children, title, testid, onClick } = props;
  return (
    <button
      class="link"
      tabindex={onClick === undefined ? -1 : 0}
      title={title}
      data-testid={testid}
      onClick={(event) => {
        if (onClick === undefined) return;
        event.stopPropagation();
        onClick();
      }}
    >
      {children}
    </button>
  );
}

interface Look {
  track: string;
  numeric: boolean;
  show: (value: string | number) => ComponentChildren;
}

const bytes = (value: string | number) => <Bytes of={Number(value)} />;

/** How values of each kind are shown; a track is a width where columns of the kind do not need another. */
const KINDS = {
  text: {
    track: "minmax(130px, 1fr)",
    numeric: false,
    show: (text) => <span title={`${text}`}>{text}</span>,
  },
  /** Text whose middle gives way where there is no room. */
  name: {
    track: "minmax(130px, 1fr)",
    numeric: false,
    show: (text) => (
      <span title={`${text}`}>
        <Middle text={`${text}`} />
      </span>
    ),
  },
  path: { track: "minmax(140px, 1.6fr)", numeric: false, show: (text) => <Path text={`${text}`} /> },
  bytes: { track: "84px", numeric: true, show: bytes },
  /** Difference between bytes. */
  change: {
    track: "100px",
    numeric: true,
    show: (value) => <Bytes of={Number(value)} text={formatSigned(Number(value))} />,
  },
  count: { track: "80px", numeric: true, show: (value) => formatCount(Number(value)) },
} as const satisfies Record<string, Look>;

type Kind = keyof typeof KINDS;

/** Return a column of one kind. Its heading in saved files is its key, unless `more` has another or none. */
export function column<Row>(
  kind: Kind,
  key: string,
  heading: string,
  about: string,
  value: (row: Row) => Value,
  more: Partial<Column<Row>> = {},
): Column<Row> {
  const { show, ...look }: Look = KINDS[kind];
  const cell = (row: Row): ComponentChildren => {
    const found = value(row);
    return found === null || found === "" ? DASH : show(found);
  };
  return { key, heading, about, csv: key, ...look, value, cell, ...more };
}

/** Return a column that is saved only. */
export function savedColumn<Row>(csv: string, value: (row: Row) => Value): Column<Row> {
  return { ...column("text", csv, "", "", value), track: "" };
}

/** Return a column that reads a part of each row; null where a row has no such part. */
export function partColumn<Row, Part>(
  { value, order = value, cell, key, heading, about, track, numeric, csv, constant = null }: Column<Part>,
  partOf: (row: Row) => Part | null,
): Column<Row> {
  const read =
    <Read,>(of: (part: Part) => Read, none: Read) =>
    (row: Row): Read => {
      const part = partOf(row);
      return part === null ? none : of(part);
    };
  const look = { key, heading, about, track, numeric, csv, constant };
  return { ...look, value: read(value, null), order: read(order, null), cell: read(cell, DASH) };
}

/** Return a column of boxes that tick rows to compare them. */
export function tickColumn<Row>(of: {
  about: string;
  testid: string;
  title: string;
  label: (row: Row) => string;
  isTicked: (row: Row) => boolean;
  onTick: (row: Row) => void;
  canTick?: (row: Row) => boolean;
}): Column<Row> {
  const { about, testid, title, label, isTicked, onTick, canTick = () => true } = of;
  const cell = (row: Row) =>
    canTick(row) ? (
      <input
        type="checkbox"
        tabindex={-1}
        data-testid={testid}
        aria-label={label(row)}
        title={title}
        checked={isTicked(row)}
        onClick={(event) => event.stopPropagation()}
        onChange={() => onTick(row)}
      />
    ) : null;
  return column("text", "tick", "", about, () => null, { track: "20px", csv: "", cell });
}
