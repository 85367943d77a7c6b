import { render as renderInto } from "preact";
import { createApi } from "./payload/api";
import { fileUrl, isReport, reportApi } from "./payload/report";
import { fetchFromServer } from "./payload/server";
import stylesheet from "./styles/page.css?url";
import { createScrollPlaces } from "./views/browser/scroll_places";
import { App } from "./views/shell/app";
import { bindTheme, readStoredTheme } from "./views/state/theme";
import { bindUrl, readUrl } from "./views/state/url";
import { initialState, store, useViewState } from "./views/state/view_state";

/** Build the page in document.body. TensorBoard calls this; page.ts does on our own page. */
export async function render(): Promise<void> {
  // TensorBoard's frame has no language, without which screen readers guess the pronunciation.
  document.documentElement.lang = "en";
  const home = new URL(/* @vite-ignore */ "./", import.meta.url).href;
  await loadStylesheet(fileUrl(stylesheet));
  const server = fetchFromServer(home);
  const capacity = (): Record<string, number> => {
    const bytes = store.get().capacity;
    return bytes === null ? {} : { capacity: bytes };
  };
  const api =
    (await reportApi()) ??
    createApi((route, query, ...more) => server(route, { ...query, ...capacity() }, ...more));
  document.querySelector("[data-unread]")?.remove();
  const start = { ...initialState, theme: readStoredTheme() };
  store.fill({ ...start, ...readUrl() });
  bindTheme(store);
  bindUrl(store, start, createScrollPlaces(window));
  const Page = () => {
    // Every answer depends on it: the page starts again.
    const assumed = useViewState((state) => state.capacity);
    return <App key={assumed} api={api} />;
  };
  renderInto(<Page />, document.body);
}

// A report is a single file with this script, so page.ts cannot call it.
if (isReport()) void render();

/** Wait for the style sheet: charts read their colors from it, and the layout would jump. */
function loadStylesheet(href: string): Promise<void> {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  const loaded = new Promise<void>((resolve) => {
    link.addEventListener("load", () => resolve());
    link.addEventListener("error", () => resolve());
  });
  document.head.append(link);
  return loaded;
}
