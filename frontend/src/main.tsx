import { render as renderInto } from "preact";
import { createStore } from "./base/store";
import { createApi } from "./payload/api";
import stylesheet from "./styles/page.css?url";
import { App } from "./views/shell/app";
import { initialState } from "./views/state";
import { storedTheme } from "./views/theme";
import { bindUrl, readUrl } from "./views/url";

/** Builds the page in document.body. TensorBoard calls this; page.ts does on a page of our own. */
export async function render(): Promise<void> {
  const home = new URL(/* @vite-ignore */ "./", import.meta.url).href;
  await loadStylesheet(stylesheet);
  const store = createStore({ ...initialState, theme: storedTheme(), ...readUrl() });
  bindUrl(store);
  renderInto(<App api={createApi(home)} pageUrl={`${home}index.html`} store={store} />, document.body);
}

/** A page drawn before its styles have come would jump when they do, and charts read their colours from them. */
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
