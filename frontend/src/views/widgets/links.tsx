import type { ComponentChildren } from "preact";
import { hostWindow, useSidebar } from "../browser/host_window";
import { NEW_RECORDING, store } from "../state/view_state";

interface Props {
  /** Title and memory space of the program's recording. */
  title: string;
  memory: string;
  /** Row number of the buffer to select there. */
  row?: number;
  about: string;
  children: ComponentChildren;
}

/** Link from a runtime allocation to the compiled program, of the same run and host. */
export function ProgramLink({ title, memory, row, about, children }: Props) {
  return (
    <button
      class="link"
      data-testid="program-link"
      title={about}
      onClick={() =>
        store.set({
          ...NEW_RECORDING,
          tab: "memory_viewer",
          module: title,
          space: memory,
          search: "",
          selected: row ?? null,
        })
      }
    >
      {children}
    </button>
  );
}

interface XprofProps {
  /** Name of a tool in XProf's URLs. */
  tool: string;
  parameters?: Record<string, string>;
  title: string;
  children: string;
}

/** Link to another tool of XProf for the run; nothing outside XProf, or for a run that XProf does not have. */
function XprofLink({ tool, parameters = {}, title, children }: XprofProps) {
  const { run, host } = store.get();
  const { runs } = useSidebar(run);
  if (runs?.includes(run) !== true) return null;
  const query = new URLSearchParams({ run, tag: tool, ...(host === "" ? {} : { host }), ...parameters });
  const href = new URL(`${tool}?${query.toString()}`, hostWindow().document.baseURI).href;
  return (
    <a data-testid={`xprof-${tool}`} href={href} target="_top" title={title}>
      {children}
    </a>
  );
}

/** XProf's Graph Viewer does not draw an instruction with one of these names. */
const NOT_DRAWN = /^(parameter|root)(\.\d+)?$/i;

/** Link to XProf's Graph Viewer for an HLO instruction of the selected program; nothing without its name. */
export function GraphViewerLink({ instruction }: { instruction: string }) {
  const { module } = store.get();
  if (module === "" || instruction === "" || NOT_DRAWN.test(instruction)) return null;
  const parameters = { moduleName: module, module_name: module, node_name: instruction };
  return (
    <XprofLink
      parameters={parameters}
      tool="graph_viewer"
      title={`Show ${instruction} in XProf's Graph Viewer`}
    >
      Graph Viewer
    </XprofLink>
  );
}

/**
 * Link to XProf's Trace Viewer of a host's profile; it counts time from its own first event, not from the
 * profile's start.
 */
export function TraceViewerLink() {
  return (
    <XprofLink tool="trace_viewer" title="Show what ran meanwhile, in XProf's Trace Viewer">
      Trace Viewer
    </XprofLink>
  );
}
