import { formatBytes, formatCount, formatCounted } from "../../base/units";
import type { Api } from "../../payload/api";
import type { Finding, Kernel, Summary } from "../../payload/generated/answers";
import { useLastFetched } from "../data/use_fetched";
import { store } from "../state/view_state";
import { ErrorMessage } from "../widgets/message";

/** Findings shown at first; steady ones and the rest are collapsed. */
const UNREMARKABLE = new Set(["steady", "warm-up"]);
const MAX_LISTED = 6;

/** Minimum share of the peak; less does not show in a figure of three digits. */
const MIN_SHARE = 1 / 1000;

/** Leak findings: growth over steps by allocation site, leaks first, each in a sentence with its numbers. */
export function StepGrowth({ api, recording }: { api: Api; recording: Summary }) {
  const { id, end_ns } = recording;
  // A curve has no allocations: the message says whether it grows.
  const isCurve = recording.kind === "watch";
  // Of a running job, the answer belongs to the same sample as the headline.
  const { value, error } = useLastFetched(`${id} ${end_ns}`, (_, signal) => api.leaks({ id }, signal));
  const findings = value?.findings ?? [];
  const minBytes = recording.peak_bytes * MIN_SHARE;
  const notable = findings
    // Leaks of any size are shown: a small one after ten steps is large after a million.
    .filter(
      ({ verdict, live_bytes }) =>
        !UNREMARKABLE.has(verdict) && (verdict === "leak" || live_bytes >= minBytes),
    )
    .slice(0, MAX_LISTED);
  const others = findings.filter((finding) => !notable.includes(finding));
  const counts = Object.entries(value?.verdicts ?? {}).filter(([, count]) => count > 0);
  return (
    <section aria-label="Growth from step to step" data-testid="growth">
      <header class="section-head">
        <h2>Growth from step to step</h2>
        {value !== null && value.steps > 0 && (
          <span class="muted">
            {formatCount(value.steps)} {plural(value.unit)}
            {counts.map(([verdict, count]) => ` · ${formatCount(count)} ${verdict}`)}
          </span>
        )}
      </header>
      {error !== null && <ErrorMessage error={error} />}
      {value?.message != null && <p class="muted">{value.message}</p>}
      {value?.retained_gradients.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      {value !== null && value.steps > 0 && notable.length === 0 && !isCurve && <p>Nothing grows.</p>}
      <FindingList findings={notable} />
      {others.length > 0 && (
        <details data-testid="more-findings">
          <summary>{formatCounted(others.length, "more site")}</summary>
          <FindingList findings={others} />
        </details>
      )}
    </section>
  );
}

/** "step", or "run of train_step" if the profile has no steps; without these, growth is stated per "1,000 events". */
const plural = (unit: string): string =>
  unit.endsWith("events") ? "parts of the recording" : unit.replace(/^\w+/, "$&s");

function FindingList({ findings }: { findings: Finding[] }) {
  return (
    <ul class="findings">
      {findings.map((finding) => (
        <FindingLine key={`${finding.verdict} ${finding.row}`} finding={finding} />
      ))}
    </ul>
  );
}

function FindingLine({ finding }: { finding: Finding }) {
  return (
    <li>
      <b class={finding.verdict === "leak" ? "verdict leak" : "verdict"}>{finding.verdict}</b>
      <div>
        <button class="link" onClick={() => store.set({ selected: finding.row })}>
          {finding.site}
        </button>{" "}
        {finding.shape !== "" && <code>{finding.shape}</code>}
        <p>{finding.sentence}</p>
      </div>
      <span>{formatBytes(finding.live_bytes)}</span>
    </li>
  );
}

/** On-chip memory by Pallas kernel and by window */
export function KernelsPanel({ kernels }: { kernels: readonly Kernel[] }) {
  return (
    <section aria-label="Kernels" data-testid="kernels">
      <header class="section-head">
        <h2>Kernels in VMEM</h2>
      </header>
      <table class="kernels">
        <thead>
          <tr>
            <th scope="col">Used</th>
            <th scope="col">Limit</th>
            <th scope="col">Kernel</th>
            <th scope="col">Block</th>
            <th scope="col">Operand</th>
          </tr>
        </thead>
        {kernels.map((kernel) => (
          <KernelRows key={kernel.name} kernel={kernel} />
        ))}
      </table>
    </section>
  );
}

function KernelRows({ kernel }: { kernel: Kernel }) {
  return (
    <tbody>
      <tr>
        <td>{kernel.used_bytes === null ? "–" : formatBytes(kernel.used_bytes)}</td>
        <td>{kernel.limit_bytes === null ? "–" : formatBytes(kernel.limit_bytes)}</td>
        <th scope="rowgroup" title={kernel.name}>
          {kernel.op_name === "" ? kernel.name : kernel.op_name}
        </th>
        <td />
        <td>{kernel.buffers.length === 0 && `${kernel.operands.join(" ")} → ${kernel.result}`}</td>
      </tr>
      {kernel.buffers.map((buffer) => (
        <tr key={buffer.name} class="muted">
          <td>{formatBytes(buffer.bytes)}</td>
          <td />
          <td>{buffer.name}</td>
          <td>
            {buffer.shape}
            {buffer.buffers > 1 && ` × ${String(buffer.buffers)} buffers`}
          </td>
          <td>
            {buffer.full_shape}
            {buffer.buffers === 0 && ", which is in VMEM itself"}
          </td>
        </tr>
      ))}
      {kernel.other_bytes !== null && kernel.other_bytes > 0 && (
        <tr class="muted">
          <td>{formatBytes(kernel.other_bytes)}</td>
          <td />
          <td>of the compiler, such as spilled registers</td>
          <td />
          <td />
        </tr>
      )}
    </tbody>
  );
}
