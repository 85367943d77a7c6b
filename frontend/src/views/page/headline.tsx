import type { ComponentChildren } from "preact";
import { formatBytes, formatCount, formatExact } from "../../base/units";
import type { Caveat, Problem } from "../../payload/generated/answers";

/** Caveats shown at first; more would push the charts out of view. */
const MAX_CAVEATS = 1;

/** Caveats of the recording, and files of the run that could not be read. */
export function Caveats({ caveats, problems }: { caveats: Caveat[]; problems: Problem[] }) {
  const lines = [
    ...caveats.map(({ code, text, bytes }) => (
      <li key={code + text}>
        {text}
        {bytes !== null && <b title={formatExact(bytes)}>{` ${formatBytes(bytes)}`}</b>}
      </li>
    )),
    ...problems.map(({ file, text }) => (
      <li key={file} class="problem" data-testid="problem">
        <code>{file}</code> {text}
      </li>
    )),
  ];
  if (lines.length === 0) return null;
  const hidden = lines.slice(MAX_CAVEATS);
  return (
    <div class="caveats" data-testid="caveats">
      <ul aria-label="Caveats">{lines.slice(0, MAX_CAVEATS)}</ul>
      {hidden.length > 0 && (
        <details>
          <summary>{formatCount(hidden.length)} more</summary>
          <ul>{hidden}</ul>
        </details>
      )}
    </div>
  );
}

interface Props {
  headline: string;
  /** The headline is a failure or a leak. */
  alarm?: boolean;
  caveats: Caveat[];
  problems: Problem[];
  /** Details under the headline: figures or advice. */
  children?: ComponentChildren;
}

/** Top of the pages that are not about one program or allocator: headline, figures, advice and caveats. */
export function Headline({ headline, alarm = false, caveats, problems, children }: Props) {
  return (
    <>
      <p class={alarm ? "headline bad" : "headline"} data-testid="headline">
        {headline}
      </p>
      {children}
      <Caveats caveats={caveats} problems={problems} />
    </>
  );
}
