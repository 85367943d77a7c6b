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

/** Return the parameters, or null for another tool. XProf names the tool in the query, in some links only in the path. */
export function readPage(url: URL): XprofPage | null {
  const query = url.searchParams;
  const tool = query.get("tag") ?? query.get("tool") ?? url.pathname.replace(/.*\//, "");
  if (!isMemoryTool(tool)) return null;
  return {
    tool,
    run: query.get("run") ?? "",
    host: query.get("host") ?? "",
    module: query.get("moduleName") ?? query.get("module_name") ?? "",
  };
}

/** Return true if `to` is the current place: XProf adds a missing run and host to the URL. */
export function isSamePage(from: XprofPage | null, to: XprofPage | null): boolean {
  if (from === null || to === null) return from === to;
  const same = (before: string, after: string) => before === after || before === "";
  return (
    from.tool === to.tool && same(from.run, to.run) && same(from.host, to.host) && from.module === to.module
  );
}

/**
 * Return the URL to write when XProf writes `text`. XProf adds the alphabetically first module by itself, while our page
 * starts with the largest, so only a module that the user chose (a new history entry, in the tool) is kept. XProf's
 * router also drops the fragment, which contains the state of our page.
 */
export function correctUrl(current: URL, text: string, isNewEntry: boolean): URL {
  const next = new URL(text, current);
  const from = readPage(current);
  const to = readPage(next);
  if (to === null) return next;
  const isChosen = from !== null && from.run === to.run && isNewEntry;
  if (!isChosen && to.module !== from?.module) {
    next.searchParams.delete("moduleName");
    next.searchParams.delete("module_name");
  }
  if (!text.includes("#") && isSamePage(from, readPage(next))) next.hash = current.hash;
  return next;
}

/** Return the URL of our page for a place, relative to XProf's base. */
export function pageUrl(place: XprofPage): string {
  const query = new URLSearchParams({ tab: place.tool });
  if (place.run) query.set("run", place.run);
  if (place.host) query.set("host", place.host);
  if (place.module) query.set("module_name", place.module);
  return `memory/index.html?${query.toString()}`;
}
