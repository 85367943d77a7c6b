import type { JSX } from "preact";
import { cssColor, roleColors } from "../../base/colors";
import { ROLES } from "../../payload/generated/constants";

/** Color and name of a role. */
export function Role({ role, dark }: { role: number; dark: boolean }): JSX.Element {
  return (
    <span class="role">
      <Swatch role={role} dark={dark} />
      {ROLES[role]}
    </span>
  );
}

export function Swatch({ role, dark }: { role: number; dark: boolean }): JSX.Element {
  return <i class="swatch" style={{ background: cssColor(roleColors(dark)[role]) }} />;
}
