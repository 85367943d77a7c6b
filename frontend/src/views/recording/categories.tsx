import type { JSX } from "preact";
import { formatBytes, formatShare } from "../../base/units";
import { bytesByRole, liveBytes } from "../../layout/live_set";
import type { Rows } from "../../payload/recording";
import { Role } from "./role";

/** What is live at the inspected position, by category: the legend of every colour on the page. */
export function Categories(props: { rows: Rows; live: Uint32Array; dark: boolean }): JSX.Element {
  const { rows, live, dark } = props;
  const total = liveBytes(rows, live);
  return (
    <ul class="categories" aria-label="Live bytes by category">
      {[...bytesByRole(rows, live)].map(([role, bytes]) => (
        <li key={role}>
          <Role role={role} dark={dark} /> <b>{formatBytes(bytes)}</b>{" "}
          <span class="muted">{formatShare(bytes, total)}</span>
        </li>
      ))}
    </ul>
  );
}
