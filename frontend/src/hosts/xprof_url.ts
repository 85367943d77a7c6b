/** XProf's tools that our page stands in for; it has a tab of the same name for each. */
const TOOLS = ["memory_viewer", "memory_profile"];

/** What XProf's URL says about one of these tools. Empty: not said. */
export interface XprofPage {
  tool: string;
  run: string;
  host: string;
  module: string;
}

export const isMemoryTool = (tool: string | null): boolean => tool !== null && TOOLS.includes(tool);

/** Null while another tool is chosen. XProf names the tool in the query, and on some links in the path alone. */
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

/** Whether `to` is where we are already: XProf adds run and host to a URL that left them out. */
export function isSamePage(from: XprofPage | null, to: XprofPage | null): boolean {
  if (from === null || to === null) return from === to;
  const same = (before: string, after: string) => before === after || before === "";
  return (
    from.tool === to.tool && same(from.run, to.run) && same(from.host, to.host) && from.module === to.module
  );
}

/**
 * The URL to write where XProf asks for `text`. XProf names the first module of the alphabet of its own accord, where
 * ours starts with the largest; only what a person chose (a new entry of the history, in the tool) may stand. And its
 * router forgets the fragment, which holds the state of our page.
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

/** Our page for a place, relative to XProf's own base. */
export function pageUrl(place: XprofPage): string {
  const query = new URLSearchParams({ tab: place.tool });
  if (place.run) query.set("run", place.run);
  if (place.host) query.set("host", place.host);
  if (place.module) query.set("module_name", place.module);
  return `memory/index.html?${query.toString()}`;
}
