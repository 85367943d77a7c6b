import { useEffect, useReducer } from "preact/hooks";
import type { SidebarLists } from "../../base/xprof_bridge";
import { xprofBridge } from "./host_window";

const NO_LISTS: SidebarLists = { runs: null, hosts: null };

/** Return what XProf's sidebar beside the page offers for a run; nulls elsewhere. */
export function useSidebar(run: string): SidebarLists {
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => xprofBridge()?.subscribe(() => again(undefined)), []);
  return xprofBridge()?.lists(run) ?? NO_LISTS;
}
