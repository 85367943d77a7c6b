import type { Store } from "../../base/store";
import { readParts, writeParts } from "../../base/url_state";
import { hostWindow, xprofBridge } from "../browser/host_window";
import type { ScrollPlaces } from "../browser/scroll_places";
import type { Field } from "./fields";
import {
  initialState,
  isSamePlace,
  placeOf,
  SCHEMA,
  STATE_KEYS,
  type StateKey,
  type ViewState,
} from "./view_state";

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

/** Return the fragment of a URL for a state. */
export function toFragment(state: ViewState): string {
  return writeParts("", NAMES, toValues(state));
}

/** Return the URL of the page in its host for a state, for others to open. The address bar may be behind the state. */
export function sharedUrl(state: ViewState): string {
  const { href, hash } = hostWindow().location;
  const fragment = writeParts(hash, NAMES, toValues(state));
  return href.replace(/#.*$/s, "") + (fragment === "" ? "" : `#${fragment}`);
}

/** The state changes as fast as the pointer moves; browsers reject more than about 100 URL changes in 30 s. */
const REST_MS = 300;

/** The tab of TensorBoard that a fragment names; empty elsewhere. */
function hostTab(fragment: string): string {
  return writeParts(fragment, NAMES, new Map())
    .split("&")
    .filter((part) => !part.includes("="))
    .join("&");
}

/**
 * Keep the URL and the state in sync, both ways, from now on. The browser's Back button undoes the user's changes of
 * place; all other changes are part of the entry in its history. Another tab starts at its top, and Back returns to
 * where the page was. `start`: the state without parameters.
 */
export function bindUrl(store: Store<ViewState>, start: ViewState, scroll: ScrollPlaces): void {
  const { location } = hostWindow();
  const { history } = xprofBridge() ?? hostWindow();
  const { dataset } = document.documentElement;
  const ours = (): Map<string, string> => readParts(location.hash, NAMES);
  /** Our parameters in the URL, as last read or written. */
  let known = writeParts("", NAMES, ours());
  /** Those of the state, which the URL may be behind. */
  let current = known;
  let home = hostTab(location.hash);
  let timer = 0;
  let isBehind = false;
  let isReading = false;

  const isElsewhere = (): boolean => {
    // TensorBoard may name its tab only after ours has started.
    home ||= hostTab(location.hash);
    return hostTab(location.hash) !== home;
  };
  const setBehind = (behind: boolean): void => {
    isBehind = behind;
    // Tests wait for this: the address bar is not up to date yet.
    if (behind) dataset["address"] = "behind";
    else delete dataset["address"];
  };
  const settle = (): void => {
    window.clearTimeout(timer);
    timer = 0;
    setBehind(false);
  };
  const write = (state: ViewState, isNewEntry: boolean): void => {
    known = current = toFragment(state);
    setBehind(false);
    const fragment = writeParts(location.hash, NAMES, toValues(state));
    if (fragment === location.hash.replace(/^#/, "") || isElsewhere()) return;
    const address = `${location.pathname}${location.search}${fragment === "" ? "" : `#${fragment}`}`;
    const { href } = location;
    try {
      if (isNewEntry) history.pushState(history.state, "", address);
      else history.replaceState(history.state, "", address);
    } catch {
      // As below.
    }
    // After too many changes, some browsers throw and others ignore more.
    if (location.href === href) setBehind(true);
  };
  const rest = (): void => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => {
      if (isBehind) write(store.get(), false);
      if (isBehind) rest();
      else settle();
    }, REST_MS);
  };

  store.subscribe((before, filled) => {
    const state = store.get();
    if (!filled && state.tab !== before.tab) scroll.move(placeOf(before), placeOf(state), isReading);
    if (isReading || toFragment(state) === current) return;
    if (!filled && !isSamePlace(before, state)) {
      if (isBehind) write(before, false);
      write(state, true);
    } else if (filled || timer === 0) write(state, false);
    else {
      current = toFragment(state);
      setBehind(true);
    }
    rest();
  });
  const follow = (): void => {
    const values = ours();
    const found = writeParts("", NAMES, values);
    if (isElsewhere() || found === known) return;
    settle();
    known = current = found;
    isReading = true;
    const { theme, host_dark } = store.get();
    store.set({
      ...start,
      theme,
      host_dark,
      ...(values.size > 0 ? fromValues(values) : readUrl()),
    });
    isReading = false;
    // Invalid and initial values do not stay in the URL.
    if (toFragment(store.get()) !== known) {
      setBehind(true);
      rest();
    }
  };
  // Links, Back and Forward send both events, but popstate before anything else can write to the URL.
  hostWindow().addEventListener("popstate", follow);
  hostWindow().addEventListener("hashchange", follow);
}
