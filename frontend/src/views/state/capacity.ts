import { parseBytes } from "../../base/units";
import { ACCELERATORS } from "../../payload/generated/constants";

const BYTES_BY_NAME = new Map(
  ACCELERATORS.flatMap(({ name, bytes, aliases }) =>
    [name, ...aliases].map((each) => [each, bytes] as const),
  ),
);
/** What the server accepts. */
const MAX_BYTES = 2 ** 50;

/** Return the bytes of a typed size or accelerator, null for no text; undefined where it is neither. */
export function readCapacity(typed: string): number | null | undefined {
  const name = typed.trim().toLowerCase();
  if (name === "") return null;
  const known = BYTES_BY_NAME.get(name.replace(/^(?:nvidia|tpu|google|cloud)[\s-]+/, ""));
  const bytes = Math.round(known ?? parseBytes(name) ?? 0);
  return bytes > 0 && bytes <= MAX_BYTES ? bytes : undefined;
}

/** Return the message for a text that is no capacity. */
export function notACapacity(typed: string): string {
  const names = ACCELERATORS.map(({ name }) => name).join(", ");
  return `${typed.trim()} is no size and no accelerator that is known: type 15.75 GiB, or one of ${names}.`;
}
