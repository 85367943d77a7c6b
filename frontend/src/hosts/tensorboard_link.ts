import { readPage, withFragment } from "./xprof_url";

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
