import { cssColor, inkOn } from "../../../base/colors";
import type { TreeBox } from "../../../layout/tree/flame";
import { labelOf } from "../../../layout/tree/tree";
import { fitText } from "../../drawing/fit_text";
import type { Picture } from "../../drawing/picture";
import { HATCH, hatchDefinition, type Surface, SvgSurface } from "../../drawing/svg_surface";
import { hatchPattern, mixColors, type TreeColors } from "./tree_colors";
import type { Scene } from "../scene/scene";

export interface TreePicture {
  scene: Scene;
  boxes: readonly TreeBox[];
  paints: TreeColors;
  /** Of the picture, in CSS pixels. */
  width: number;
  height: number;
  /** Lines of boxes beside each other, or boxes inside boxes. */
  nested: boolean;
}

const FONT = "11px system-ui, sans-serif";
/** Below this there is no room for a label, nor for the gap that tells two neighbors of one color apart. */
const MIN_LABEL_WIDTH = 26;
const MIN_GAP_WIDTH = 3;
const PADDING = 5;
const LINE = 15;

/** Draws a tree's boxes, each with its label where that fits. */
export function paintTree(canvas: HTMLCanvasElement, picture: TreePicture): void {
  const ratio = devicePixelRatio;
  canvas.width = Math.round(picture.width * ratio);
  canvas.height = Math.round(picture.height * ratio);
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.scale(ratio, ratio);
  context.clearRect(0, 0, picture.width, picture.height);
  context.textBaseline = "middle";
  paintBoxes(context, picture, hatchPattern(context, picture.paints.hatch));
}

/** The same boxes for a file. */
export function drawTree(picture: TreePicture): Picture {
  const surface = new SvgSurface();
  paintBoxes(surface, picture, HATCH);
  const { width, height, paints } = picture;
  return { width, height, shapes: [hatchDefinition(paints.hatch), ...surface.shapes] };
}

function paintBoxes(surface: Surface, picture: TreePicture, hatch: CanvasPattern | string): void {
  surface.font = FONT;
  const around = new Set(picture.nested ? picture.boxes.map((box) => holder(picture, box)) : []);
  for (const box of picture.boxes)
    if (box.gathered > 0) {
      surface.fillStyle = hatch;
      surface.fillRect(box.x, box.y, withGap(box.width), withGap(box.height));
    } else {
      if (surface instanceof SvgSurface) surface.title(titleOf(picture.scene, box));
      paintBox(surface, picture, box, !box.own && around.has(box.node));
    }
}

/** Less the gap to the next box, where there is room for one. */
function withGap(length: number): number {
  return length >= MIN_GAP_WIDTH ? length - 1 : length;
}

function titleOf(scene: Scene, box: TreeBox): string {
  const { total, self } = scene.weights;
  return `${labelOfBox(scene, box)}: ${scene.unit.exact((box.own ? self : total)[box.node])}`;
}

/** The node that a box lies in. */
function holder({ scene }: TreePicture, { from, gathered, own }: TreeBox): number {
  return gathered > 0 || own ? from : scene.tree.parent[from];
}

/** `around`: others lie in it. */
function paintBox(context: Surface, picture: TreePicture, box: TreeBox, around: boolean): void {
  const { scene, paints, nested } = picture;
  const [width, height] = [withGap(box.width), withGap(box.height)];
  const own = fillOf(scene, box, paints);
  const filled = around ? mixColors(own, paints.surface, paints.around) : own;
  context.fillStyle = cssColor(filled);
  context.fillRect(box.x, box.y, width, height);
  if (width < MIN_LABEL_WIDTH || height < LINE - 3) return;
  const ink = inkOn(filled);
  const label = labelOfBox(scene, box);
  const { total, self } = scene.weights;
  const weight = scene.unit.format((box.own ? self : total)[box.node]);
  const [left, room] = [box.x + PADDING, width - 2 * PADDING];
  const middle = box.y + Math.min(height, 1.15 * LINE) / 2 + 0.5;
  context.fillStyle = ink;
  const drawn = isPath(label) ? fitEnd(context, label, room) : fitText(context, label, room);
  context.fillText(drawn, left, middle);
  context.globalAlpha = 0.72;
  const after = context.measureText(drawn).width + 8;
  // A box without others inside has room for a second line.
  if (after + context.measureText(weight).width <= room) context.fillText(weight, left + after, middle);
  else if (nested && height >= 2.2 * LINE && context.measureText(weight).width <= room)
    context.fillText(weight, left, middle + LINE);
  context.globalAlpha = 1;
}

/** Paths begin alike: where there is no room, their beginning gives way. */
function isPath(label: string): boolean {
  return label.includes("/") && !label.includes(" ");
}

function fitEnd(context: Surface, label: string, room: number): string {
  if (context.measureText(label).width <= room) return label;
  // Letters of this font are at least 2 px wide.
  let kept = label.slice(-Math.floor(room / 2));
  while (kept.length > 2 && context.measureText(`…${kept}`).width > room) kept = kept.slice(1);
  return kept.length > 2 ? `…${kept}` : "";
}

/** Color is that of the role with most of the weight; frames of frameworks are gray, what is not found is faint. */
function fillOf(scene: Scene, { node }: TreeBox, paints: TreeColors): number {
  const { tree, weights, found } = scene;
  const own = tree.framework[node] === 1 ? paints.framework : paints.role(weights.role[node]);
  const tinted = mixColors(own, paints.surface, paints.tints[tree.name[node] % paints.tints.length]);
  return found.highlighted === null || found.highlighted[node] === 1
    ? tinted
    : mixColors(tinted, paints.surface, paints.dimmed);
}

/** What stands in a box: its label, those above it that it is drawn as one with, and how many were merged. */
export function labelOfBox({ tree }: Scene, { node, from, own }: TreeBox): string {
  if (own) return "itself";
  const labels: string[] = [];
  for (let at = node; at > tree.parent[from]; at = tree.parent[at]) labels.push(labelWithCount(tree, at));
  return labels.reverse().join(" › ");
}

function labelWithCount(tree: Scene["tree"], node: number): string {
  return tree.merged[node] > 1 ? `${labelOf(tree, node)} ×${tree.merged[node]}` : labelOf(tree, node);
}
