import { useEffect, useState } from "preact/hooks";
import { formatBytes, formatCount } from "../../base/units";
import type { Api } from "../../payload/api";
import type { Progress } from "../../payload/generated/answers";

/** Time between two questions; files that are read sooner show nothing. */
const EVERY_MS = 400;

/** Placeholder of a page whose files are being read: bytes read of how many, and the elapsed time. */
export function Reading({ api, run }: { api: Api; run: string }) {
  const progress = useProgress(api, run);
  return (
    <div class="placeholder" aria-busy="true">
      {progress !== null && (
        <div class="reading" data-testid="reading">
          <progress
            aria-label="Bytes read"
            max={progress.total_bytes}
            value={Math.min(progress.read_bytes, progress.total_bytes)}
          />
          <p>{progressText(progress)}</p>
        </div>
      )}
    </div>
  );
}

function progressText({ read_bytes: read, total_bytes: total, seconds }: Progress): string {
  const elapsed = `${formatCount(Math.round(seconds))} s`;
  return read < total
    ? `Reading ${formatBytes(read)} of ${formatBytes(total)}, ${elapsed}`
    : `Analyzing ${formatBytes(total)}, ${elapsed}`;
}

/** Ask for the progress of a run again and again; null while nothing is being read. */
function useProgress(api: Api, run: string): Progress | null {
  const [progress, setProgress] = useState<Progress | null>(null);
  useEffect(() => {
    setProgress(null);
    if (run === "" || api.report !== null) return;
    const abort = new AbortController();
    let timer = setTimeout(ask, EVERY_MS);
    function ask(): void {
      // A failure is that of the files, which the page shows.
      void api
        .progress({ run }, abort.signal)
        .then(
          (found) => setProgress(found.total_bytes > 0 ? found : null),
          () => undefined,
        )
        .then(() => {
          if (!abort.signal.aborted) timer = setTimeout(ask, EVERY_MS);
        });
    }
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [api, run]);
  return progress;
}
