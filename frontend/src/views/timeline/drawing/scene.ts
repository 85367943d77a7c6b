import { useMemo } from "preact/hooks";
import type { AgeStack } from "../../../layout/stacking/age_stack";
import type { Axis } from "../../../layout/axis/axis";
import { type TimelineBox, type View } from "../../../layout/axis/span";
import {
  rowBox,
  boxOnAxis,
  timelineExtent,
  hasBlock,
  type ShownRegions,
} from "../../../layout/timeline/blocks";
import type { Program } from "../../../payload/recording/program";
import type { Regions } from "../../../payload/recording/regions";
import type { Rows } from "../../../payload/recording/rows";

/** What the timeline is of: the tables, the part of them that is shown, and all there is to see of it. */
export interface Scene {
  rows: Rows;
  /** Of those, so many can be pointed at and selected: the others are what no row explains. */
  listed: number;
  regions: Regions;
  program: Program;
  axis: Axis;
  length: number;
  peak: number;
  show: ShownRegions;
  /** Whether rows lie where their addresses are, so that what is between them is free. */
  holes: boolean;
  /** Where rows are that are stacked by age, and so at no one height; null where each has its place. */
  stack: AgeStack | null;
  extent: View;
}

export function useScene(parts: Omit<Scene, "extent">): Scene {
  const { rows, listed, regions, program, axis, length, peak, show, holes, stack } = parts;
  return useMemo(
    () => ({ ...parts, extent: timelineExtent(regions, axis, show) }),
    [rows, listed, regions, program, axis, length, peak, show, holes, stack],
  );
}

/** Where a row's block is, in values of the axis and bytes: one box, or one after the other where it sinks. */
export function piecesOf(scene: Scene, row: number | null): TimelineBox[] {
  const { rows, regions, axis, length, show, stack } = scene;
  if (row === null || row < 0 || row >= rows.length || !hasBlock(rows, regions, row, show)) return [];
  const boxes = stack === null ? [rowBox(rows, regions, row, length)] : stack.rowBoxes(row);
  return boxes.map((box) => boxOnAxis(axis, box));
}

/** The box around a row's block, or null where it has none. */
export function blockOf(scene: Scene, row: number | null): TimelineBox | null {
  const pieces = piecesOf(scene, row);
  if (pieces.length === 0) return null;
  // Of one height, and it only ever sinks.
  const [first, last] = [pieces[0], pieces[pieces.length - 1]];
  return { start: first.start, end: last.end, bottom: last.bottom, top: first.top };
}

/** The other rows in the same memory as this one. */
export function rowsSharing({ rows }: Scene, row: number): number[] {
  const shared: number[] = [];
  const canonical = rows.canonical[row];
  for (let other = 0; other < rows.length; other++)
    if (rows.canonical[other] === canonical && other !== row) shared.push(other);
  return shared;
}

/** Number of rows whose block covers the position, lowest bytes first. */
export function rowsAcross(scene: Scene, position: number): number[] {
  const { rows, regions, length, show, stack } = scene;
  if (stack !== null) return stack.liveAt(position).map((rank) => stack.rows.row[rank]);
  const found: { row: number; bottom: number }[] = [];
  for (let row = 0; row < rows.length; row++) {
    if (!hasBlock(rows, regions, row, show)) continue;
    const box = rowBox(rows, regions, row, length);
    if (box.start <= position && position < box.end) found.push({ row, bottom: box.bottom });
  }
  return found.sort((a, b) => a.bottom - b.bottom).map(({ row }) => row);
}
