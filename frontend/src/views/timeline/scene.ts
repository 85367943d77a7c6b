import { useMemo } from "preact/hooks";
import type { Axis } from "../../layout/axis";
import {
  type Box,
  boxOf,
  boxOn,
  extentOf,
  hasBlock,
  type Show,
  type View,
} from "../../layout/timeline_blocks";
import type { Program, Regions, Rows } from "../../payload/recording";

/** What the timeline is of: the tables, the part of them that is shown, and all there is to see of it. */
export interface Scene {
  rows: Rows;
  regions: Regions;
  program: Program;
  axis: Axis;
  length: number;
  peak: number;
  show: Show;
  /** Whether rows lie where their addresses are, so that what is between them is free. */
  holes: boolean;
  extent: View;
}

export function useScene(parts: Omit<Scene, "extent">): Scene {
  const { rows, regions, program, axis, length, peak, show, holes } = parts;
  return useMemo(
    () => ({ ...parts, extent: extentOf(regions, axis, show) }),
    [rows, regions, program, axis, length, peak, show, holes],
  );
}

/** Where a row's block is, in values of the axis and bytes, or null where it has none. */
export function blockOf(scene: Scene, row: number | null): Box | null {
  const { rows, regions, axis, length, show } = scene;
  if (row === null || row < 0 || row >= rows.length || !hasBlock(rows, regions, row, show)) return null;
  return boxOn(axis, boxOf(rows, regions, row, length));
}

/** The other rows in the same memory as this one. */
export function sharersOf({ rows }: Scene, row: number): number[] {
  const shared: number[] = [];
  const canonical = rows.canonical[row];
  for (let other = 0; other < rows.length; other++)
    if (rows.canonical[other] === canonical && other !== row) shared.push(other);
  return shared;
}

/** Number of rows whose block covers the position, lowest bytes first. */
export function rowsAcross(scene: Scene, position: number): number[] {
  const { rows, regions, length, show } = scene;
  const found: { row: number; bottom: number }[] = [];
  for (let row = 0; row < rows.length; row++) {
    if (!hasBlock(rows, regions, row, show)) continue;
    const box = boxOf(rows, regions, row, length);
    if (box.start <= position && position < box.end) found.push({ row, bottom: box.bottom });
  }
  return found.sort((a, b) => a.bottom - b.bottom).map(({ row }) => row);
}
