/** Return what was thrown as an Error: libraries may throw anything. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** Return the message of what was thrown. */
export function messageOf(thrown: unknown): string {
  return asError(thrown).message;
}
