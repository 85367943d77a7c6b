/** When a field goes back to its initial value: with another recording, or with another pair to compare. */
export type Reset = "recording" | "comparison";

/** One field of the page's state. */
export interface Field<Value> {
  initial: Value;
  /** Null: the field is not part of the URL. */
  url: UrlCodec<Value> | null;
  reset?: Reset;
  /** What the page is about: the browser's Back button undoes a change of it. */
  isPlace?: true;
  /** Names of the field in XProf's links. */
  xprofNames?: readonly string[];
  /** A link with this field and without a tab leads to a program. */
  ofProgram?: true;
}

interface UrlCodec<Value> {
  /** The parameter's name. Links are bookmarked and shared: it must never change. */
  name: string;
  /** Return undefined for text that is not a value of the field. */
  read: (text: string) => Value | undefined;
  write: (value: Value) => string;
}

type Options = Pick<Field<unknown>, "reset" | "isPlace" | "xprofNames" | "ofProgram">;

function field<Value, O extends Options>(
  initial: Value,
  url: UrlCodec<Value> | null,
  options: O,
): Field<Value> & O {
  return { initial, url, ...options };
}

/** Return a field that is not part of the URL, such as what is under the pointer. */
export function privateField<Value, const O extends Options = Options>(
  initial: Value,
  options = {} as O,
): Field<Value> & O {
  return field<Value, O>(initial, null, options);
}

/** `toUrl` shortens values that a URL has no room for. */
export function text<const O extends Options & { toUrl?: (value: string) => string }>(
  name: string,
  options = {} as O,
): Field<string> & O {
  return field("", { name, read: (value) => value, write: options.toUrl ?? ((value) => value) }, options);
}

/** Return a field that is false at first. */
export function flag<const O extends Options = Options>(name: string, options = {} as O): Field<boolean> & O {
  const read = (value: string): true | undefined => (value !== "" && value !== "false" ? true : undefined);
  return field<boolean, O>(false, { name, read, write: String }, options);
}

/** Return a field that is null at first. */
export function integer<const O extends Options = Options>(
  name: string,
  options = {} as O,
): Field<number | null> & O {
  const read = (value: string): number | undefined => {
    const number = Number(value);
    return Number.isInteger(number) ? number : undefined;
  };
  return field<number | null, O>(null, { name, read, write: String }, options);
}

export type Window = readonly [from: number, to: number];

/** Return a field for a part of an axis; null at first, which is all of it. */
export function window<const O extends Options = Options>(
  name: string,
  options = {} as O,
): Field<Window | null> & O {
  const read = (value: string): Window | undefined => {
    const [from, to, ...more] = value.split(",").map(Number);
    return from < to && more.length === 0 ? [from, to] : undefined;
  };
  return field<Window | null, O>(null, { name, read, write: (value) => value?.join(",") ?? "" }, options);
}

/** Return a field with a few values. The initial one need not be among those that a URL can name. */
export function choice<
  const Value extends string,
  const Initial extends string,
  const O extends Options = Options,
>(name: string, values: readonly Value[], initial: Initial, options = {} as O): Field<Value | Initial> & O {
  const read = (value: string): Value | undefined => values.find((known) => known === value);
  return field<Value | Initial, O>(initial, { name, read, write: String }, options);
}
