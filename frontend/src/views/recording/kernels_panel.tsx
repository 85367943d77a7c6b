import type { JSX } from "preact";
import { formatBytes } from "../../base/units";
import type { Api } from "../../payload/api";
import { useFetched } from "../data/use_fetched";
import { ErrorMessage } from "../widgets/message";

/** On-chip memory by Pallas kernel: what each takes, and what it may take. Nothing for a program without kernels. */
export function KernelsPanel({ api, id }: { api: Api; id: string }): JSX.Element | null {
  const { value, error } = useFetched(id, (key, signal) => api.kernels({ id: key }, signal));
  if (error !== null) return <ErrorMessage error={error} />;
  if (!value || value.kernels.length === 0) return null;
  return (
    <section aria-label="Kernels" data-testid="kernels">
      <header class="section-head">
        <h2>Kernels</h2>
      </header>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Used</th>
            <th scope="col">Limit</th>
            <th scope="col">Kernel</th>
            <th scope="col">Operands</th>
            <th scope="col">Result</th>
          </tr>
        </thead>
        <tbody>
          {value.kernels.map((kernel) => (
            <tr key={kernel.name}>
              <td>{kernel.used_bytes === null ? "–" : formatBytes(kernel.used_bytes)}</td>
              <td>{kernel.limit_bytes === null ? "–" : formatBytes(kernel.limit_bytes)}</td>
              <td title={kernel.name}>{kernel.op_name === "" ? kernel.name : kernel.op_name}</td>
              <td>{kernel.operands.join(" ")}</td>
              <td>{kernel.result}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
