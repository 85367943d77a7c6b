import type { JSX } from "preact";
import { formatCount } from "../../base/units";
import type { FleetMeta } from "../../payload/generated/answers";

/** Files that are read of how many, and the elapsed time. `then`: what is done with them. */
export function ScanProgress({
  done,
  total,
  seconds,
  then,
}: Pick<FleetMeta, "done" | "total" | "seconds"> & { then?: string }): JSX.Element {
  const elapsed = `${formatCount(Math.round(seconds))} s`;
  const text =
    then !== undefined && total > 0 && done === total
      ? `${then}, ${elapsed}`
      : `Reading ${formatCount(done)} of ${formatCount(total)} files, ${elapsed}`;
  return (
    <div class="fleet-reading" data-testid="fleet-reading">
      <progress aria-label="Files read" max={Math.max(total, 1)} value={done} />
      <p>{text}</p>
    </div>
  );
}
