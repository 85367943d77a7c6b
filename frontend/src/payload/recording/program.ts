import type { Table } from "../tables/tables";
import type { TextColumn } from "../tables/text_column";

/** Positions of a recording: instructions of the flattened schedule, or events of an allocator. */
export interface Program {
  length: number;
  name: TextColumn;
  op: TextColumn;
  op_name: TextColumn;
  computation: TextColumn;
  /**
   * Time of each event in ns since the profile started, never decreasing; null for a schedule, which has no
   * clock.
   */
  time_ns: Float64Array | null;
  /** Bytes in use at each event that no row explains; null if rows explain all bytes. */
  unexplained: Float64Array | null;
}

export function readProgram(program: Table): Program {
  return {
    length: program.length,
    name: program.text("name"),
    op: program.text("op"),
    op_name: program.text("op_name"),
    computation: program.text("computation"),
    time_ns: program.has("time_ns") ? program.f64("time_ns") : null,
    unexplained: program.has("unexplained") ? program.f64("unexplained") : null,
  };
}
