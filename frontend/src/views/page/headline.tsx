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

interface Part {
  /** What is shown however narrow the line is, such as a role and its share. */
  start: string;
  text: string;
  /** Letters at the end of `text` that are always shown, too: a line number, or a saving. */
  end: number;
}

/** Return a part that is shown in full. */
const fixed = (start: string): Part => ({ start, text: "", end: 0 });

/** Letters of the colon and the number at the end of a source line. */
const lineNumber = (line: string) => /:\d+$/.exec(line)?.[0].length ?? 0;

/** Return the parts of the verdict, as questions/kinds/verdict.py: verdict_text does. */
function partsOf(verdict: RecordingVerdict): Part[] {
  const { used_bytes: used, limit_bytes: limit, over_bytes: over, role, line, alarm } = verdict;
  if (alarm !== "") return [fixed(alarm)];
  const usage = fixed(limit === null ? `Peak ${formatBytes(used)}` : formatBytesOf(used, limit));
  const padding =
    verdict.padding_bytes > 0 ? [fixed(`padding ${formatShare(verdict.padding_bytes, used)}`)] : [];
  if (over > 0)
    return [fixed(`${formatBytes(over)} over the limit of ${formatBytes(limit ?? 0)}`), ...padding];
  if (role !== "") {
    const share = `${role} ${formatShare(verdict.role_bytes, used)}`;
    if (line === "") return [usage, fixed(share), ...padding];
    return [usage, { start: `${share}, `, text: line, end: lineNumber(line) }, ...padding];
  }
  if (line === "") return [usage, ...padding];
  const bytes = `, ${formatBytes(verdict.line_bytes)}`;
  const text = `most from ${line}${bytes}`;
  return [usage, { start: "", text, end: lineNumber(line) + bytes.length }, ...padding];
}

/** Return the best change, as verdict.py: best_text does; null where there is none. */
function bestPart(list: AdviceList): Part | null {
  const best = bestChange(list);
  if (best === null) return null;
  const text =
    list.fits_with === null ? `best: ${best.title} ${best.saving}` : `${best.title}: ${best.saving}`;
  return { start: "", text, end: best.saving.length };
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
  const parts = partsOf(verdict);
  if (best !== null) parts.push(best);
  return (
    <p
      class={isBad ? "verdict-line bad" : "verdict-line"}
      data-testid="headline"
      aria-busy={busy}
      title={parts.map(({ start, text }) => start + text).join(" · ")}
    >
      {parts.map((part, i) => (
        <span key={i}>
          {part.start !== "" && <span>{part.start}</span>}
          {part.text !== "" && <Middle text={part.text} end={part.end} />}
        </span>
      ))}
    </p>
  );
}
