/** Return a thrown value as an Error: libraries may throw any value. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** Return the message of a thrown value. */
export function messageOf(thrown: unknown): string {
  return asError(thrown).message;
}
