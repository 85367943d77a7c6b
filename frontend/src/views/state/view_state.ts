import type { Field, Reset } from "./fields";
import { SCHEMA } from "./schema";

export { TABS, type Tab } from "./schema";

type Schema = typeof SCHEMA;
export type StateKey = keyof Schema;

/** The state of the page: every chart reads it, and changes it for all others. */
export type ViewState = { [Key in StateKey]: Schema[Key] extends Field<infer Value> ? Value : never };

type ResetKey<R extends Reset> = {
  [Key in StateKey]: Schema[Key] extends { reset: R } ? Key : never;
}[StateKey];

export const STATE_KEYS = Object.keys(SCHEMA) as StateKey[];

function initialValues(keys: readonly StateKey[]): Partial<ViewState> {
  return Object.fromEntries(keys.map((key) => [key, SCHEMA[key].initial]));
}

function resetValues<R extends Reset>(reset: R): Pick<ViewState, ResetKey<R>> {
  const keys = STATE_KEYS.filter((key) => (SCHEMA[key] as Field<unknown>).reset === reset);
  return initialValues(keys) as Pick<ViewState, ResetKey<R>>;
}

export const initialState = initialValues(STATE_KEYS) as ViewState;

const PLACE = STATE_KEYS.filter((key) => (SCHEMA[key] as Field<unknown>).isPlace);

/** Return a text for what a state is about. */
export function placeOf(state: ViewState): string {
  return JSON.stringify(PLACE.map((key) => state[key]));
}

/** Return true if two states are about the same thing: they differ in how it is shown only. */
export function isSamePlace(a: ViewState, b: ViewState): boolean {
  return PLACE.every((key) => a[key] === b[key]);
}

/** Initial values of the fields that belong to one recording and mean nothing in another. */
export const NEW_RECORDING = resetValues("recording");

/** Initial values of the fields that name what is compared. */
export const NEW_COMPARISON = resetValues("comparison");
