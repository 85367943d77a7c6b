import type { ComponentChildren, JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { readFilter, toggleRole } from "../../layout/url_values/row_filter";
import { ROLES } from "../../payload/generated/constants";
import type { ViewState } from "../state/view_state";
import { Role } from "../widgets/role";

interface Props {
  role: number;
  dark: boolean;
  store: Store<ViewState>;
  /** Figures beside the name. */
  children?: ComponentChildren;
}

/** Role in a legend: a button that restricts all charts to this role, and to others that are pressed. */
export function RoleFilter({ role, dark, store, children }: Props): JSX.Element {
  const filter = readFilter(useStore(store, (state) => state.row_filter));
  const pressed = filter?.kind === "roles" && filter.roles.includes(role);
  const others = filter?.kind === "roles" && !pressed;
  return (
    <button
      class={others ? "role-filter aside" : "role-filter"}
      aria-pressed={pressed}
      data-testid={`role-${ROLES[role].replaceAll(" ", "-")}`}
      title={pressed ? "Click to clear" : others ? "Click to show too" : "Click to show only this category"}
      onClick={() => store.set({ row_filter: toggleRole(store.get().row_filter, role) })}
    >
      <Role role={role} dark={dark} />
      {children}
    </button>
  );
}
