/** Names of the role numbers in `Rows.role`, in the order of the backend's Role. */
export const ROLES = [
  "unknown",
  "parameter",
  "optimizer state",
  "input",
  "gradient",
  "activation",
  "output",
  "constant",
  "temporary",
  "executable",
  "thread-local",
  "state",
] as const;

export type RoleName = (typeof ROLES)[number];
