/** What was asked of a memory and not given; sizes in bytes, null where the error does not say. */
export interface OutOfMemory {
  asked_bytes: number | null;
  free_bytes: number | null;
  largest_free_bytes: number | null;
  capacity_bytes: number | null;
  in_use_bytes: number | null;
  missing_bytes: number | null;
  /** When: "compile", "load" or "run". When compiling, what is asked is all that the program needs. */
  phase: string;
  /** What the bytes of the recording are: "in use", or "needed" by a program that was not let run. */
  used_is: string;
  reason: string;
  wanted_by: string;
  /** What was asked, why it failed, and then what would help. */
  sentences: string[];
}
