import { cssColor, roleColors } from "../../base/colors";
import { ROLES } from "../../payload/generated/constants";
import type { Rows } from "../../payload/recording/rows";
import { useDark } from "../state/theme";

/** Color and name of a role. */
export function Role({ role }: { role: number }) {
  return (
    <span class="role">
      <Swatch role={role} />
      {ROLES[role]}
    </span>
  );
}

/** Role of a row; an ellipsis until it has loaded. */
export function RowRole({ rows, row }: { rows: Rows; row: number }) {
  return rows.roles_follow ? <>…</> : <Role role={rows.role[row]} />;
}

export function Swatch({ role }: { role: number }) {
  const colors = roleColors(useDark());
  return <i class="swatch" style={{ background: cssColor(colors[role]) }} />;
}
