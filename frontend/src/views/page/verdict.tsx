import { formatBytes, formatBytesOf, formatShare } from "../../base/units";
import type { AdviceList, RecordingVerdict } from "../../payload/generated/answers";
import { bestChange } from "../../payload/responses/names";
import { Middle } from "../widgets/middle";

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

interface Props {
  verdict: RecordingVerdict;
  /** Null until it is known. */
  advice: AdviceList | null;
  /** Parts of it are still being found. */
  busy: boolean;
}

/** The verdict in one line, which is high enough for the advice that comes later. */
export function Verdict({ verdict, advice, busy }: Props) {
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
