import type { JSX } from "preact";
import { formatCount } from "../../base/units";
import type { FleetMeta } from "../../payload/generated/answers";

/** Files that are read of how many, and the elapsed time. */
export function ScanProgress({
  done,
  total,
  seconds,
}: Pick<FleetMeta, "done" | "total" | "seconds">): JSX.Element {
  return (
    <div class="fleet-reading" data-testid="fleet-reading">
      <progress aria-label="Files read" max={Math.max(total, 1)} value={done} />
      <p>
        Reading {formatCount(done)} of {formatCount(total)} files, {formatCount(Math.round(seconds))} s
      </p>
    </div>
  );
}
