import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatBytes, formatShare } from "../../base/units";
import { bytesByRole, liveAt, liveBytes } from "../../layout/usage/live_set";
import type { Rows } from "../../payload/recording/rows";
import { Role } from "../widgets/role";

interface Props {
  rows: Rows;
  live: Uint32Array;
  peak: number;
  dark: boolean;
}

/** What is live at the inspected position, by category: the legend of every color on the page. */
export function Categories({ rows, live, peak, dark }: Props): JSX.Element {
  // All there ever are, and always in the order of the peak: nothing moves while one steps through positions.
  const roles = useMemo(() => {
    const ever = bytesByRole(rows, rows.charge.keys());
    return [...new Set([...bytesByRole(rows, liveAt(rows, peak)).keys(), ...ever.keys()])];
  }, [rows, peak]);
  const bytes = bytesByRole(rows, live);
  const total = liveBytes(rows, live);
  return (
    <ul class="categories" aria-label="Live bytes by category">
      {roles.map((role) => (
        <li key={role} class={bytes.has(role) ? "" : "muted"}>
          <Role role={role} dark={dark} /> <b>{formatBytes(bytes.get(role) ?? 0)}</b>{" "}
          <span class="muted">{formatShare(bytes.get(role) ?? 0, total)}</span>
        </li>
      ))}
    </ul>
  );
}
