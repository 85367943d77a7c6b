import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { hasBlock } from "../../layout/timeline_blocks";
import { ROLES } from "../../payload/recording";
import { Role } from "../memory_viewer/role";
import type { ViewState } from "../state";
import { useDark } from "../theme";
import type { Scene } from "./scene";

/** The roles that have blocks, with their colours. */
export function Legend({ scene, store }: { scene: Scene; store: Store<ViewState> }): JSX.Element {
  const dark = useDark(store);
  const roles = useMemo(() => rolesOf(scene), [scene]);
  if (roles.every((role) => role === 0))
    return <span class="timeline-legend muted">one colour per op, grey: live before</span>;
  return (
    <span class="timeline-legend">
      {roles.map((role) => (
        <Role key={role} role={role} dark={dark} />
      ))}
    </span>
  );
}

function rolesOf({ rows, regions, show }: Scene): number[] {
  const seen = new Set<number>();
  for (let row = 0; row < rows.length && seen.size < ROLES.length; row++)
    if (hasBlock(rows, regions, row, show)) seen.add(rows.role[row]);
  return [...seen].sort((a, b) => a - b);
}
