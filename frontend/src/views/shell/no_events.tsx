import type { JSX } from "preact";
import type { Store } from "../../base/store";
import type { ViewState } from "../state";
import { openTab } from "./tabs";

/** Why a run has no allocator events, and what to do about each reason. */
export function NoEvents({ store }: { store: Store<ViewState> }): JSX.Element {
  return (
    <div class="message" role="status" data-testid="no-events">
      <strong>This run has no allocator events</strong>
      <p>One of these is the reason:</p>
      <dl class="reasons">
        <dt>CPU backend</dt>
        <dd>
          The allocators of GPUs and TPUs write such events; that of a CPU does not. Run the script within
          <code> with tb_memplugin.capture.track():</code>, which writes them on any backend.
        </dd>
        <dt>Tracer level</dt>
        <dd>
          The events come with host tracing. Capture with a host tracer level of 2 or more, which is what
          jax.profiler.trace does unless it is told otherwise.
        </dd>
        <dt>No device work in the window</dt>
        <dd>Nothing was allocated or freed while the profile was taken. Capture at least one whole step.</dd>
      </dl>
      <p>
        The{" "}
        <button class="link" data-testid="to-memory-viewer" onClick={() => openTab(store, "memory_viewer")}>
          Memory Viewer
        </button>{" "}
        shows what the programs of this run hold, by their compiled schedule: it needs no events.
      </p>
    </div>
  );
}
