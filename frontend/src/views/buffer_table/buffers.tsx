import { LiveHeading, type LiveProps, useLiveRows } from "../page/live_rows";
import { BufferTable } from "./buffer_table";

/** Table of what is live at the inspected position, or in the selected range, below a heading that says so. */
export function Buffers({ view, available, program }: LiveProps) {
  const of = useLiveRows({ view, available, program });
  const { axis, title, memory } = view.recording;
  return (
    <section aria-label="Buffers" data-testid="buffers">
      <header class="section-head">
        <LiveHeading {...{ view, available, program, of }} testid="buffers-heading" />
      </header>
      <BufferTable
        {...{ available }}
        allocator={axis === "TIME"}
        moment={axis === "INSTANT"}
        position={of.first}
        live={of.filtered}
        unexplained={of.unexplainedShown}
        times={program?.time_ns ?? null}
        length={view.length}
        fileName={`${title}-${memory}-at-${of.first}.csv`}
      />
    </section>
  );
}
