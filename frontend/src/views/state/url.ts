import type { Store } from "../../base/store";
import { readParts, writeParts } from "../../base/url_state";
import { hostWindow } from "../browser/host_window";
import type { Field } from "./fields";
import { SCHEMA } from "./schema";
import { initialState, STATE_KEYS, type StateKey, type ViewState } from "./view_state";

/** The fields of the state that a URL carries. */
const FIELDS = STATE_KEYS.flatMap((key) => {
  const { url, ofProgram = false, xprofNames = [] } = SCHEMA[key] as Field<unknown>;
  return url === null ? [] : [{ key, url, ofProgram, xprofNames }];
});

const NAMES: ReadonlySet<string> = new Set(FIELDS.map(({ url }) => url.name));

/** Our parameter for each of XProf's. */
const FROM_XPROF = new Map(
  FIELDS.flatMap(({ url, xprofNames }) => xprofNames.map((name) => [name, url.name] as const)),
);

const QUERY_NAMES: ReadonlySet<string> = new Set([...NAMES, ...FROM_XPROF.keys()]);

/** Return the URL parameters of a state; initial values are left out. */
export function toValues(state: ViewState): Map<string, string> {
  const values = new Map<string, string>();
  for (const { key, url } of FIELDS) {
    const value = state[key];
    if (value !== null && value !== initialState[key]) values.set(url.name, url.write(value));
  }
  return values;
}

/** Return the part of a state that URL parameters give. Parameters without a valid value are left out. */
export function fromValues(values: ReadonlyMap<string, string>): Partial<ViewState> {
  const patch: Partial<Record<StateKey, unknown>> = {};
  let ofProgram = false;
  for (const field of FIELDS) {
    const text = values.get(field.url.name);
    const value = text === undefined ? undefined : field.url.read(text);
    if (value === undefined) continue;
    patch[field.key] = value;
    ofProgram ||= field.ofProgram;
  }
  // Links without a tab, such as XProf's, lead to a program.
  if (ofProgram && patch.tab === undefined) patch.tab = "memory_viewer";
  return patch as Partial<ViewState>;
}

/** Read the query of our own page, where XProf's links have the state. */
function fromQuery(query: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of readParts(query, QUERY_NAMES)) values.set(FROM_XPROF.get(name) ?? name, value);
  return values;
}

/** Read the state that the page starts with from its URL. */
export function readUrl(): Partial<ViewState> {
  const values = fromQuery(window.location.search);
  for (const [name, value] of readParts(hostWindow().location.hash, NAMES)) values.set(name, value);
  return fromValues(values);
}

/** Return the fragment for a state, for links to our own page. */
export function fragmentOf(state: ViewState): string {
  return `#${writeParts("", NAMES, toValues(state))}`;
}

/** The state changes as fast as the pointer moves; browsers reject more than about 100 URL changes in 30 s. */
const WRITE_AFTER_MS = 300;

/** Keep the URL and the state in sync, both ways, from now on. */
export function bindUrl(store: Store<ViewState>): void {
  const { location, history } = hostWindow();
  const { dataset } = document.documentElement;
  let timer = 0;
  store.subscribe(() => {
    window.clearTimeout(timer);
    // Tests wait for this: the address bar is not up to date yet.
    dataset["address"] = "behind";
    timer = window.setTimeout(() => {
      delete dataset["address"];
      const fragment = writeParts(location.hash, NAMES, toValues(store.get()));
      if (fragment !== location.hash.replace(/^#/, ""))
        history.replaceState(
          history.state,
          "",
          `${location.pathname}${location.search}${fragment === "" ? "" : `#${fragment}`}`,
        );
    }, WRITE_AFTER_MS);
  });
  hostWindow().addEventListener("hashchange", (event) => {
    // Not location.hash: the timer above can overwrite it between a click on a link and this event.
    const values = readParts(new URL(event.newURL).hash, NAMES);
    // The host wrote a fragment without any of our parameters, for example for another tab of TensorBoard.
    if (values.size > 0) store.set({ ...initialState, theme: store.get().theme, ...fromValues(values) });
  });
}
