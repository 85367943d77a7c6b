import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatBytes, formatShare } from "../../base/units";
import { bytesByRole, liveAt, liveBytes } from "../../layout/usage/live_set";
import type { Rows } from "../../payload/recording/rows";
import type { Store } from "../../base/store";
import { useTerms } from "../data/terms";
import { RoleFilter } from "../row_filter/role_filter";
import type { ViewState } from "../state/view_state";

interface Props {
  rows: Rows;
  live: Uint32Array;
  /** Live bytes without a row. */
  unexplained: number;
  peak: number;
  store: Store<ViewState>;
  dark: boolean;
}

/** Live bytes at the inspected position by role; the legend of all colors on the page, whose rows filter. */
export function Categories({ rows, live, unexplained, peak, store, dark }: Props): JSX.Element {
  // All roles of the recording, in the order at the peak, so that nothing moves while stepping through positions.
  const roles = useMemo(() => {
    const ever = bytesByRole(rows, rows.charge.keys());
    return [...new Set([...bytesByRole(rows, liveAt(rows, peak)).keys(), ...ever.keys()])];
  }, [rows, peak]);
  const bytes = bytesByRole(rows, live);
  const total = liveBytes(rows, live) + Math.max(unexplained, 0);
  const terms = useTerms();
  return (
    <ul class="categories" aria-label="Live bytes by role">
      {roles.map((role) => (
        <li key={role} class={bytes.has(role) ? "" : "muted"}>
          <RoleFilter role={role} dark={dark} store={store}>
            {" "}
            <b>{formatBytes(bytes.get(role) ?? 0)}</b>{" "}
            <span class="muted">{formatShare(bytes.get(role) ?? 0, total)}</span>
          </RoleFilter>
        </li>
      ))}
      {unexplained > 0 && (
        <li>
          {terms.unexplained} <b>{formatBytes(unexplained)}</b>{" "}
          <span class="muted">{formatShare(unexplained, total)}</span>
        </li>
      )}
    </ul>
  );
}
