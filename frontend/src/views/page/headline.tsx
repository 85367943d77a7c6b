import type { ComponentChildren } from "preact";
import { formatBytes, formatBytesOf, formatCount, formatExact, formatShare } from "../../base/units";
import type { AdviceList, Caveat, Problem, RecordingVerdict } from "../../payload/generated/answers";
import { bestChange } from "../../payload/responses/names";
import { Middle } from "../widgets/labels";

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

/** Letters of a colon and a line number. */
const LINE_NUMBER = 5;

interface Part {
  text: string;
  /** Letters at the end that are shown however narrow the line is: a line number, or a saving. */
  end: number;
}

/** Return the parts of the verdict, as questions/kinds/verdict.py: verdict_text does. */
function partsOf(verdict: RecordingVerdict): string[] {
  const { used_bytes: used, limit_bytes: limit, over_bytes: over, role, line, alarm } = verdict;
  if (alarm !== "") return [alarm];
  const usage = limit === null ? `Peak ${formatBytes(used)}` : formatBytesOf(used, limit);
  const padding = verdict.padding_bytes > 0 ? [`padding ${formatShare(verdict.padding_bytes, used)}`] : [];
  if (over > 0) return [`${formatBytes(over)} over the limit of ${formatBytes(limit ?? 0)}`, ...padding];
  const place = line === "" ? "" : `, ${line}`;
  if (role !== "") return [usage, `${role} ${formatShare(verdict.role_bytes, used)}${place}`, ...padding];
  return [
    usage,
    ...(line === "" ? [] : [`most from ${line}, ${formatBytes(verdict.line_bytes)}`]),
    ...padding,
  ];
}

/** Return the best change, as verdict.py: best_text does; null where there is none. */
function bestPart(list: AdviceList): Part | null {
  const best = bestChange(list);
  if (best === null) return null;
  const text =
    list.fits_with === null ? `best: ${best.title} ${best.saving}` : `${best.title}: ${best.saving}`;
  return { text, end: best.saving.length };
}

interface VerdictProps {
  verdict: RecordingVerdict;
  /** Null until it is known. */
  advice: AdviceList | null;
  /** Parts of it are still being found. */
  busy: boolean;
}

/** The verdict in one line, which is high enough for the advice that comes later. */
export function Verdict({ verdict, advice, busy }: VerdictProps) {
  const isBad = verdict.alarm !== "" || verdict.over_bytes > 0;
  const best = advice === null ? null : bestPart(advice);
  const parts: Part[] = partsOf(verdict).map((text) => ({ text, end: LINE_NUMBER }));
  if (best !== null) parts.push(best);
  return (
    <p
      class={isBad ? "verdict-line bad" : "verdict-line"}
      data-testid="headline"
      aria-busy={busy}
      title={parts.map(({ text }) => text).join(" · ")}
    >
      {parts.map((part, i) => (
        <span key={i}>{i === 0 ? part.text : <Middle {...part} />}</span>
      ))}
    </p>
  );
}
