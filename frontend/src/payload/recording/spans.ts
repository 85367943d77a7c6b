import type { Table } from "../tables/tables";
import type { TextColumn } from "../tables/text_column";

/** Named time ranges: training steps, executions of programs, and user annotations. */
export interface Spans {
  length: number;
  name: TextColumn;
  kind: Uint8Array;
  /** Nanoseconds, as in `Program`. */
  start_ns: Float64Array;
  end_ns: Float64Array;
}

export function readSpans(table: Table): Spans | null {
  if (table.length === 0) return null;
  return {
    length: table.length,
    name: table.text("name"),
    kind: table.u8("kind"),
    start_ns: table.f64("start_ns"),
    end_ns: table.f64("end_ns"),
  };
}
