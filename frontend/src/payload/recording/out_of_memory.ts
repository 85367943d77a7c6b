/** An out-of-memory failure. Sizes in bytes, null where the error does not contain them. */
export interface OutOfMemory {
  asked_bytes: number | null;
  free_bytes: number | null;
  largest_free_bytes: number | null;
  capacity_bytes: number | null;
  in_use_bytes: number | null;
  missing_bytes: number | null;
  /** "compile", "load" or "run". When compiling, asked_bytes is everything that the program needs. */
  phase: string;
  /** The meaning of the live bytes: "in use", or "needed" by a program that never ran. */
  used_is: string;
  reason: string;
  wanted_by: string;
  /** The request, the cause, then hints. */
  sentences: string[];
}
