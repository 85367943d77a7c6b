import { formatBytes } from "../../base/units";
import type { Kernel } from "../../payload/generated/answers";

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
