/** Runs, and hosts of a run, that XProf's sidebar offers; null until XProf has listed them. */
export interface SidebarLists {
  runs: readonly string[] | null;
  hosts: readonly string[] | null;
}

/** The interface that our script in XProf's page, hosts/xprof.ts, offers to our page in its frame. */
export interface XprofBridge {
  /** A history for our page that changes XProf's window: XProf's parameters and sidebar follow our fragment. */
  history: Pick<History, "state" | "pushState" | "replaceState">;
  lists: (run: string) => SidebarLists;
  /** Call `listener` after every change of the lists. Return a function that stops listening. */
  subscribe: (listener: () => void) => () => void;
}

declare global {
  interface Window {
    tbMemplugin?: XprofBridge;
  }
}
