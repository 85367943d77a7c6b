/*
 * This is a part of a classic script. It shares no module with the page: a bundler moves what both import into a third
 * file, which a classic script cannot import.
 */

/** XProf's tools that our page replaces, each with a tab of the same name. */
const TOOLS = ["memory_viewer", "memory_profile"];

/** Parameters of XProf's URL for one of these tools; empty if absent. */
export interface XprofPage {
  tool: string;
  run: string;
  host: string;
  module: string;
}

export const isMemoryTool = (tool: string | null): boolean => tool !== null && TOOLS.includes(tool);

/**
 * Return the parameters, or null for another tool. XProf's router names the tool in the path, its links in the query.
 * For a moment after another tool, XProf writes that tool's query to the path of ours.
 */
export function readPage(url: URL): XprofPage | null {
  const query = url.searchParams;
  const named = url.pathname.replace(/.*\//, "");
  const tool = isMemoryTool(named) ? named : (query.get("tag") ?? query.get("tool") ?? "");
  if (!isMemoryTool(tool)) return null;
  return {
    tool,
    run: query.get("run") ?? "",
    host: query.get("host") ?? "",
    module: query.get("moduleName") ?? query.get("module_name") ?? "",
  };
}

export function isSamePage(a: XprofPage | null, b: XprofPage | null): boolean {
  if (a === null || b === null) return a === b;
  return a.tool === b.tool && a.run === b.run && a.host === b.host && a.module === b.module;
}

/**
 * Return the URL to write when XProf writes `next`. A new entry is a choice in XProf's sidebar, which our page follows.
 * Otherwise XProf completes or repeats a place: it omits our fragment, adds the alphabetically first module, while our
 * page starts with the largest, and replaces a host that it does not have. There our fragment decides.
 */
export function correctUrl(
  current: URL,
  next: URL,
  isNewEntry: boolean,
  runs: readonly string[] | null = null,
): URL {
  const [from, to] = [readPage(current), readPage(next)];
  const corrected = new URL(next);
  if (to === null) return corrected;
  const wasChosen = from !== null && from.tool === to.tool && from.run === to.run && isNewEntry;
  if (!wasChosen && to.module !== from?.module) dropModule(corrected);
  if (from === null) return corrected;
  corrected.hash = current.hash;
  return isNewEntry ? withFragment(corrected) : withParameters(corrected, runs);
}

/** Return a URL with the place of its parameters in its fragment, without any other state of our page. */
export function withFragment(url: URL): URL {
  const page = readPage(url);
  if (page === null) return url;
  const values = { tab: page.tool, run: page.run, host: page.host, module: page.module };
  const ours = Object.entries(values).flatMap(([key, value]) =>
    value === "" ? [] : [`${key}=${encode(value)}`],
  );
  const next = new URL(url);
  next.hash = [...parts(url).filter((part) => !part.includes("=")), ...ours].join("&");
  return next;
}

/**
 * Return a URL with the place of its fragment in its parameters. XProf cannot open a run that is not among `runs`;
 * null: these are not known.
 */
export function withParameters(url: URL, runs: readonly string[] | null): URL {
  const { tab, run, host, module } = readFragment(url);
  const page = readPage(url);
  if (page === null || run === "" || runs?.includes(run) === false) return url;
  const next = new URL(url);
  const query = next.searchParams;
  query.set("run", run);
  if (!isMemoryTool(tab)) {
    // Our other tabs are not tools of XProf: its sidebar stays at the last one.
    if (run !== page.run) dropModule(next);
    if (run !== page.run) query.delete("host");
    return next;
  }
  if (tab !== page.tool) next.pathname = next.pathname.replace(new RegExp(`${page.tool}$`), tab);
  query.delete("tool");
  query.set("tag", tab);
  if (host !== "") query.set("host", host);
  dropModule(next);
  if (tab === "memory_viewer" && module !== "") query.set("moduleName", module);
  return next;
}

/** Return true if the fragment names a run: our page has written its place. */
export const hasPlace = (url: URL): boolean => readFragment(url).run !== "";

function readFragment(url: URL): { tab: string; run: string; host: string; module: string } {
  const found = { tab: "", run: "", host: "", module: "" };
  for (const part of parts(url)) {
    const [key, ...rest] = part.split("=");
    if (key in found) found[key as keyof typeof found] = decode(rest.join("="));
  }
  return found;
}

const parts = (url: URL): string[] => url.hash.replace(/^#/, "").split("&").filter(Boolean);

function encode(value: string): string {
  return encodeURIComponent(value).replace(/%(2F|28|29)/g, (code) => decodeURIComponent(code));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", "%20"));
  } catch {
    return text;
  }
}

function dropModule(url: URL): void {
  url.searchParams.delete("moduleName");
  url.searchParams.delete("module_name");
}

/** Return the URL of our page for a place, relative to XProf's base. */
export function pageUrl(place: XprofPage): string {
  const query = new URLSearchParams({ tab: place.tool });
  if (place.run) query.set("run", place.run);
  if (place.host) query.set("host", place.host);
  if (place.module) query.set("module_name", place.module);
  return `memory/index.html?${query.toString()}`;
}

/** In TensorBoard XProf is a tab beside ours: link its memory tools to the same place in the tab Memory. */
export function linkToMemory(look: string): void {
  const anchor = document.createElement("a");
  anchor.className = look;
  anchor.dataset["testid"] = "to-memory-tab";
  anchor.target = "_parent";
  anchor.textContent = "Open in Memory";
  anchor.title = "The same program in the tab Memory: sources, roles, advice";
  const update = (): void => {
    const here = new URL(location.href);
    if (readPage(here) === null) {
      anchor.remove();
      return;
    }
    const tab = new URL(window.parent.location.href);
    tab.hash = `memory&${withFragment(here).hash.slice(1)}`;
    anchor.href = tab.href;
    document.body.append(anchor);
  };
  for (const name of ["pushState", "replaceState"] as const) {
    const write = history[name].bind(history);
    history[name] = (...details) => {
      write(...details);
      update();
    };
  }
  window.addEventListener("popstate", update);
  document.addEventListener("DOMContentLoaded", update);
}
