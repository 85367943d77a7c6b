import { inkOn } from "../../../base/colors";
import { byteTicks, labelCenter, type Span, type TimelineBox, type View } from "../../../layout/axis";
import { boxInPixels, xPixel, yPixel } from "../../../layout/timeline/rects";
import { rowName } from "../../../payload/recording/rows";
import { colorIndex, rgbOf, SHADES } from "../../../render/frame/palette";
import type { Labels } from "../../../render/painter/picture";
import type { Size } from "../../browser/hooks";
import { CHART_FONT, drawSideTitle, GUTTER_LEFT, veil } from "../../drawing/surface";
import { drawLabels, type Label } from "./labels";
import { pictureSize, piecesOf, type Scene, type TimelineColors } from "./scene";

/** Items drawn over the picture. Row numbers; null for none. */
export interface Marks {
  position: number;
  /** Selected range of positions. */
  range: Span | null;
  selected: number | null;
  /** Rows that share the selected row's memory, or the rows around the hole under the pointer. */
  beside: readonly number[];
  hovered: number | null;
  match: number | null;
  /** Zoom selection in pixels of the picture: [x0, y0, x1, y1]. */
  band: readonly [number, number, number, number] | null;
}

interface Overlay {
  scene: Scene;
  view: View;
  size: Size;
  labels: Labels;
  /** Device pixels per CSS pixel in the labels' rectangles. */
  ratio: number;
  highlighted: Uint8Array | null;
  marks: Marks;
  /** Titles of the axes. */
  titles: { x: string; y: string };
  colors: TimelineColors;
}

/** Draw axes, labels, lines and outlines over the picture, in CSS pixels of the plot. */
export function drawOverlay(ctx: CanvasRenderingContext2D, overlay: Overlay): void {
  const { size } = overlay;
  const picture = pictureSize(size);
  ctx.clearRect(0, 0, size.width, size.height);
  ctx.font = CHART_FONT;
  drawAxes(ctx, overlay, picture);
  ctx.save();
  ctx.translate(GUTTER_LEFT, 0);
  ctx.beginPath();
  ctx.rect(0, 0, picture.width, picture.height);
  ctx.clip();
  drawRegionNames(ctx, overlay, picture);
  drawLabels(ctx, overlay.labels, overlay.ratio, (row) => labelOf(overlay, row));
  drawRange(ctx, overlay, picture);
  drawLines(ctx, overlay, picture);
  drawOutlines(ctx, overlay, picture);
  drawBand(ctx, overlay);
  ctx.restore();
}

function labelOf({ scene, highlighted, colors }: Overlay, row: number): Label {
  const { color, size } = scene.rows;
  const dim = highlighted !== null && highlighted[row] !== 1;
  const fill = rgbOf(colors.palette.fill[colorIndex(color[row], row % SHADES, dim)]);
  return { name: rowName(scene.rows, row), bytes: size[row], ink: dim ? colors.muted : inkOn(fill) };
}

function drawAxes(
  ctx: CanvasRenderingContext2D,
  { scene, view, size, colors, titles }: Overlay,
  picture: Size,
): void {
  ctx.fillStyle = colors.muted;
  ctx.strokeStyle = colors.muted;
  ctx.lineWidth = 1;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  ctx.beginPath();
  for (const { value, label } of byteTicks(view.y, picture.height / 36)) {
    const y = Math.round(yPixel(value, view.y, picture.height));
    ctx.moveTo(GUTTER_LEFT - 4, Math.min(y, picture.height - 1) + 0.5);
    ctx.lineTo(GUTTER_LEFT, Math.min(y, picture.height - 1) + 0.5);
    ctx.fillText(label, GUTTER_LEFT - 7, Math.min(Math.max(y, 6), picture.height - 5));
  }
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  for (const { value, label } of scene.axis.ticks(view.x, picture.width / 110)) {
    const x = GUTTER_LEFT + Math.round(xPixel(value, view.x, picture.width)) + 0.5;
    ctx.moveTo(x, picture.height);
    ctx.lineTo(x, picture.height + 4);
    ctx.fillText(label, labelCenter(x, ctx.measureText(label).width, size.width), picture.height + 7);
  }
  ctx.fillText(titles.x, GUTTER_LEFT + picture.width / 2, picture.height + 22);
  drawSideTitle(ctx, titles.y, picture.height / 2);
  ctx.stroke();
}

/** Minimum height of a region's label; lower regions have one or two blocks with labels of their own. */
const MIN_NAMED_HEIGHT = 44;

/** Draw the names of regions at the right, if there is room. Segments have no names. */
function drawRegionNames(
  ctx: CanvasRenderingContext2D,
  { scene, view, colors }: Overlay,
  picture: Size,
): void {
  const { base, size, kind, temporary } = scene.regions;
  if (scene.holes) return;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (let region = 0; region < scene.regions.length; region++) {
    if (scene.show === "temp" && temporary[region] === 0) continue;
    const top = Math.max(yPixel(base[region] + size[region], view.y, picture.height), 0);
    const bottom = Math.min(yPixel(base[region], view.y, picture.height), picture.height);
    if (bottom - top < MIN_NAMED_HEIGHT || kind.at(region) === "") continue;
    const text = `${kind.at(region)} #${region}`;
    const width = ctx.measureText(text).width;
    ctx.globalAlpha = 0.82;
    ctx.fillStyle = colors.surface;
    ctx.fillRect(picture.width - width - 12, top + 2, width + 10, 15);
    ctx.globalAlpha = 1;
    ctx.fillStyle = colors.muted;
    ctx.fillText(text, picture.width - 7, top + 10);
  }
}

/** Draw a veil over what lies outside of the selected range. */
function drawRange(
  ctx: CanvasRenderingContext2D,
  { scene, view, marks, colors }: Overlay,
  { width, height }: Size,
): void {
  if (marks.range === null) return;
  const [from, to] = scene.axis.fromSaved(marks.range).map((value) => xPixel(value, view.x, width));
  veil(ctx, [0, width], [from, to], [0, height], colors);
}

function drawLines(ctx: CanvasRenderingContext2D, overlay: Overlay, picture: Size): void {
  const { scene, view, marks, colors } = overlay;
  const at = (position: number): number =>
    Math.round(xPixel(scene.axis.mark(position), view.x, picture.width)) + 0.5;
  ctx.strokeStyle = colors.ink;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  const line = (x: number, dash: number[], width: number): void => {
    ctx.setLineDash(dash);
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.moveTo(x, 0);
    ctx.lineTo(x, picture.height);
    ctx.stroke();
    ctx.setLineDash([]);
  };
  if (marks.position !== scene.peak) line(at(scene.peak), [3, 3], 1);
  line(at(marks.position), [], 1.5);
  const text = "peak";
  const x = at(scene.peak);
  ctx.fillStyle = colors.ink;
  const width = ctx.measureText(text).width + 8;
  // At the right edge the label is drawn to the left.
  const left = x + width > picture.width ? x - width : x;
  ctx.fillRect(left, 0, width, 15);
  ctx.fillStyle = colors.surface;
  ctx.fillText(text, left + 4, 2);
}

/** Draw outlines: related rows, the hovered block, the match, and the selected block on top. */
function drawOutlines(ctx: CanvasRenderingContext2D, overlay: Overlay, picture: Size): void {
  const { scene, view, marks, colors } = overlay;
  const outline = (row: number, width: number, stroke: string, dash: number[] = []): void => {
    const pieces = piecesOf(scene, row);
    if (pieces.length === 0) return;
    const path = outlineOf(pieces, view, picture);
    ctx.setLineDash([]);
    ctx.lineWidth = width + 2;
    ctx.strokeStyle = colors.surface;
    ctx.stroke(path);
    ctx.setLineDash(dash);
    ctx.lineWidth = width;
    ctx.strokeStyle = stroke;
    ctx.stroke(path);
    ctx.setLineDash([]);
  };
  const { selected, beside, hovered, match } = marks;
  for (const row of beside) outline(row, 1, colors.ink, [4, 3]);
  if (hovered !== null && hovered !== selected) outline(hovered, 1, colors.ink);
  if (match !== null && match !== selected) outline(match, 2, colors.accent);
  if (selected !== null) outline(selected, 2, colors.ink);
}

/** Trace a sequence of boxes: along their tops, and back along their bottoms. */
function outlineOf(pieces: readonly TimelineBox[], view: View, picture: Size): Path2D {
  // Distant edges are clipped, as canvases lose precision there; boxes thinner than the line are widened.
  const cut = (edge: number, size: number): number => Math.min(Math.max(edge, -9), size + 9);
  const edges = pieces.map((box) => {
    const [x0, y0, x1, y1] = boxInPixels(box, view, picture.width, picture.height);
    const [left, top] = [cut(x0, picture.width), cut(y0, picture.height)];
    return { left, top, right: cut(x1, picture.width), bottom: Math.max(cut(y1, picture.height), top + 3) };
  });
  const last = edges[edges.length - 1];
  last.right = Math.max(last.right, edges[0].left + 3);
  const path = new Path2D();
  for (const { left, right, top } of edges) {
    path.lineTo(left, top);
    path.lineTo(right, top);
  }
  for (const { left, right, bottom } of edges.reverse()) {
    path.lineTo(right, bottom);
    path.lineTo(left, bottom);
  }
  path.closePath();
  return path;
}

function drawBand(ctx: CanvasRenderingContext2D, { marks, colors }: Overlay): void {
  if (marks.band === null) return;
  const [x0, y0, x1, y1] = marks.band;
  ctx.fillStyle = colors.accent;
  ctx.globalAlpha = 0.2;
  ctx.fillRect(x0, y0, x1 - x0, y1 - y0);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colors.accent;
  ctx.lineWidth = 1;
  ctx.strokeRect(x0, y0, x1 - x0, y1 - y0);
}
