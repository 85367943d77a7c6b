import { cssColor, roleColors } from "../../base/colors";
import { ROLES } from "../../payload/generated/constants";
import type { Rows } from "../../payload/recording/rows";

/** Color and name of a role. */
export function Role({ role, dark }: { role: number; dark: boolean }) {
  return (
    <span class="role">
      <Swatch role={role} dark={dark} />
      {ROLES[role]}
    </span>
  );
}

/** Role of a row; an ellipsis until it has loaded. */
export function RowRole({ rows, row, dark }: { rows: Rows; row: number; dark: boolean }) {
  return rows.roles_follow ? <>…</> : <Role role={rows.role[row]} dark={dark} />;
}

export function Swatch({ role, dark }: { role: number; dark: boolean }) {
  return <i class="swatch" style={{ background: cssColor(roleColors(dark)[role]) }} />;
}
