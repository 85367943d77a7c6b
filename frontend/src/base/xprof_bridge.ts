/** Runs, and hosts of a run, that XProf's sidebar offers; null until XProf has listed them. */
export interface SidebarLists {
  runs: readonly string[] | null;
  hosts: readonly string[] | null;
}

/** What our script in XProf's page, hosts/xprof.ts, offers our page in its frame. */
export interface XprofBridge {
  /** History of XProf's window for our page: XProf's parameters and its sidebar follow our fragment. */
  history: Pick<History, "state" | "pushState" | "replaceState">;
  lists: (run: string) => SidebarLists;
  /** Call `listener` after every change of the lists. Return a function that stops it. */
  subscribe: (listener: () => void) => () => void;
}

declare global {
  interface Window {
    tbMemplugin?: XprofBridge;
  }
}
