import { useEffect, useMemo, useState } from "preact/hooks";
import { cssColor, rowColors } from "../../../base/colors";
import type { Axis, TimelineBox, View } from "../../../layout/axis";
import type { AgeStack } from "../../../layout/stacking/age_stack";
import {
  boxOnAxis,
  hasBlock,
  regionBands,
  rowBox,
  type ShownRegions,
  timelineBlocks,
  timelineExtent,
} from "../../../layout/timeline/blocks";
import type { Program } from "../../../payload/recording/recording";
import type { Regions, Rows } from "../../../payload/recording/rows";
import { makePalette, mixPixels, type Palette, pixelOf, rgbOf } from "../../../render/frame/palette";
import { TimelineRenderer } from "../../../render/workers/timeline_renderer";
import type { Size } from "../../browser/hooks";
import { colorReader, GUTTER_LEFT, GUTTER_RIGHT, type PageColors } from "../../drawing/surface";

/** Height of the x axis with its title, in CSS pixels. */
export const AXIS_HEIGHT = 36;

/** Return the size of the blocks' picture inside a plot of this size with its gutters and axis. */
export function pictureSize({ width, height }: Size): Size {
  return {
    width: Math.max(width - GUTTER_LEFT - GUTTER_RIGHT, 1),
    height: Math.max(height - AXIS_HEIGHT, 1),
  };
}

/** A pixel ratio above 2 makes no visible difference in flat blocks, and its cost grows with the square. */
export function pixelRatio(): number {
  return Math.min(window.devicePixelRatio || 1, 2);
}

/** Return the axis value and the byte at a pixel of the picture. */
export function valueAt(view: View, picture: Size, x: number, y: number): { along: number; byte: number } {
  return {
    along: view.x[0] + (x / picture.width) * (view.x[1] - view.x[0]),
    byte: view.y[1] - (y / picture.height) * (view.y[1] - view.y[0]),
  };
}

export interface TimelineColors extends Pick<PageColors, "ink" | "muted" | "surface" | "accent"> {
  palette: Palette;
}

/** Colors of the page, which canvases do not inherit. Regions are slightly darker than the background. */
export function readColors(dark: boolean, page: Element = document.documentElement): TimelineColors {
  const read = colorReader(page);
  const ink = read("--ink", dark ? 0xe7e8ea : 0x1b1d21);
  const surface = read("--surface", dark ? 0x1a1d21 : 0xffffff);
  const towardsInk = (share: number): number => rgbOf(mixPixels(pixelOf(surface), pixelOf(ink), share));
  return {
    ink: cssColor(ink),
    muted: cssColor(read("--muted", 0x808080)),
    surface: cssColor(surface),
    accent: cssColor(read("--accent", 0x2f6fb3)),
    palette: makePalette(surface, towardsInk(0.045), towardsInk(0.22), rowColors(dark)),
  };
}

/** Content of the timeline: the tables, the rows shown, and their full extent. */
export interface Scene {
  rows: Rows;
  /** Identifies the blocks of the rows, which may get their names and times later. */
  blocks: object;
  /** Rows that can be selected; the blocks after them are live bytes without a row. */
  listed: number;
  regions: Regions;
  program: Program;
  axis: Axis;
  length: number;
  peak: number;
  show: ShownRegions;
  /** True if memory can be live before a row is written, or after its last use: in compiled programs. */
  reserves: boolean;
  /** True if rows are placed by address, so that gaps between them are free memory. */
  holes: boolean;
  /** Stack of rows by age, whose heights change over time; null if each row has a fixed place. */
  stack: AgeStack | null;
  extent: View;
}

export function useScene(parts: Omit<Scene, "extent">): Scene {
  const { rows, blocks, listed, regions, program, axis, length, peak, show, holes, stack } = parts;
  const extent = useMemo(() => timelineExtent(regions, axis, show), [blocks, axis, show]);
  return useMemo(
    () => ({ ...parts, extent }),
    [rows, blocks, listed, regions, program, axis, length, peak, show, holes, stack, extent],
  );
}

/** Return a row's block as boxes in axis values and bytes: one, or several if its height changes. */
export function piecesOf(scene: Scene, row: number | null): TimelineBox[] {
  const { rows, regions, axis, length, show, stack } = scene;
  if (row === null || row < 0 || row >= rows.length || !hasBlock(rows, regions, row, show)) return [];
  const boxes = stack === null ? [rowBox(rows, regions, row, length)] : stack.rowBoxes(row);
  return boxes.map((box) => boxOnAxis(axis, box));
}

/** Return the bounding box of a row's block; null if it has none. */
export function blockOf(scene: Scene, row: number | null): TimelineBox | null {
  const pieces = piecesOf(scene, row);
  if (pieces.length === 0) return null;
  // The height is constant, and a block only moves down.
  const [first, last] = [pieces[0], pieces[pieces.length - 1]];
  return { start: first.start, end: last.end, bottom: last.bottom, top: first.top };
}

/** Return the other rows that share this row's memory. */
export function rowsSharing({ rows }: Scene, row: number): number[] {
  const shared: number[] = [];
  const canonical = rows.canonical[row];
  for (let other = 0; other < rows.length; other++)
    if (rows.canonical[other] === canonical && other !== row) shared.push(other);
  return shared;
}

/** Return the rows whose blocks cover the position, lowest bytes first. */
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

interface Rendering {
  renderer: TimelineRenderer | null;
  /** Error of the renderer, or null. */
  failure: string | null;
}

/** Create the renderer of a scene, with its blocks and search matches. */
export function useRenderer(scene: Scene, highlighted: Uint8Array | null): Rendering {
  const [renderer, setRenderer] = useState<TimelineRenderer | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    const made = new TimelineRenderer(setFailure);
    setRenderer(made);
    return () => made.close();
  }, []);
  // During render rather than in an effect: the charts' effects, which order pictures, run first.
  const { blocks, rows, regions, length, show, axis, stack, reserves } = scene;
  useMemo(() => {
    const bands = regionBands(regions, show);
    if (stack !== null) renderer?.send({ kind: "ages", ages: stack.rows, clock: axis.clock, bands });
    else {
      const blocks = timelineBlocks(rows, regions, length, show, axis.clock, reserves);
      renderer?.send({ kind: "blocks", blocks, bands });
    }
  }, [renderer, blocks, length, show, axis, stack]);
  useMemo(() => renderer?.send({ kind: "highlighted", highlighted }), [renderer, highlighted]);
  return { renderer, failure };
}
