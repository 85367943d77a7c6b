import type { JSX } from "preact";
import type { GroupKey } from "../../layout/table/grouping";

const GROUPS: readonly (readonly [GroupKey, string])[] = [
  ["name", "name"],
  ["op_name", "function"],
  ["op", "region"],
  ["source", "source line"],
  ["stack", "stack"],
  ["step", "step of allocation"],
  ["shape", "shape"],
  ["dtype", "type"],
  ["role", "category"],
  ["none", "nothing"],
];

/** Choice of the grouping of an allocator's allocations. */
export function GroupChoice(props: {
  group: GroupKey;
  /** Groupings with more than one group. */
  keys: readonly GroupKey[];
  onPick: (group: GroupKey) => void;
}): JSX.Element {
  return (
    <label class="toggle">
      Grouped by
      <select
        data-testid="table-group"
        value={props.group}
        onChange={(event) => props.onPick(event.currentTarget.value as GroupKey)}
      >
        {GROUPS.filter(([key]) => props.keys.includes(key) || key === props.group).map(([key, label]) => (
          <option key={key} value={key}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}
