import { cssColor, inkOn } from "../../../base/colors";
import type { TreeBox } from "../../../layout/tree/flame";
import { shortLabel } from "../../../layout/tree/tree";
import { fitText } from "../../drawing/fit_text";
import type { Picture } from "../../drawing/picture";
import { roleLegend } from "../../drawing/role_legend";
import { sizedContext } from "../../drawing/sized_context";
import { HATCH, hatchDefinition, type Surface, SvgSurface } from "../../drawing/svg_surface";
import { hatchPattern, mixColors, type TreeColors } from "./tree_colors";
import type { Scene } from "../scene/scene";

export interface TreePicture {
  scene: Scene;
  boxes: readonly TreeBox[];
  paints: TreeColors;
  /** Size of the picture in CSS pixels. */
  width: number;
  height: number;
  /** Nested boxes (treemap) or rows of boxes (flame graph). */
  nested: boolean;
}

const FONT = "11px system-ui, sans-serif";
/** Minimum width in pixels for a label, and for a gap between neighbors of the same color. */
const MIN_LABEL_WIDTH = 26;
const MIN_GAP_WIDTH = 3;
const PADDING = 5;
const LINE = 15;

/** Draw a tree's boxes, with their labels if they fit. */
export function paintTree(canvas: HTMLCanvasElement, picture: TreePicture): void {
  const context = sizedContext(canvas, picture.width, picture.height);
  if (context !== null) paintBoxes(context, picture, hatchPattern(context, picture.paints.hatch));
}

/** Draw the boxes for a file; with `roles`, colors are those of roles. */
export function drawTree(picture: TreePicture, roles: boolean): Picture {
  const surface = new SvgSurface();
  paintBoxes(surface, picture, HATCH);
  const { width, height, paints } = picture;
  const { tree, weights } = picture.scene;
  const framework = picture.boxes.some(({ node, gathered }) => gathered === 0 && tree.framework[node] === 1);
  const drawn = picture.boxes.filter(({ node }) => tree.framework[node] === 0);
  const legend = [
    ...(roles ? roleLegend(drawn.map(({ node }) => weights.role[node])) : []),
    ...(framework ? [{ color: cssColor(paints.framework), label: "framework" }] : []),
    ...(picture.boxes.some(({ gathered }) => gathered > 0)
      ? [{ color: paints.hatch, label: "too small to draw" }]
      : []),
  ];
  return { width, height, shapes: [hatchDefinition(paints.hatch), ...surface.shapes], legend };
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

/** Return the width without the gap to the next box, if there is room for one. */
function withGap(length: number): number {
  return length >= MIN_GAP_WIDTH ? length - 1 : length;
}

function titleOf(scene: Scene, box: TreeBox): string {
  const { total, self } = scene.weights;
  return `${labelOfBox(scene, box)}: ${scene.unit.exact((box.own ? self : total)[box.node])}`;
}

/** Return the node that contains a box. */
function holder({ scene }: TreePicture, { from, gathered, own }: TreeBox): number {
  return gathered > 0 || own ? from : scene.tree.parent[from];
}

/** `around`: the box contains others. */
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
  // A box without children has room for a second line.
  if (after + context.measureText(weight).width <= room) context.fillText(weight, left + after, middle);
  else if (nested && height >= 2.2 * LINE && context.measureText(weight).width <= room)
    context.fillText(weight, left, middle + LINE);
  context.globalAlpha = 1;
}

/** Shorten a path at the start, as paths differ at the end. */
function isPath(label: string): boolean {
  return label.includes("/") && !label.includes(" ");
}

function fitEnd(context: Surface, label: string, room: number): string {
  if (context.measureText(label).width <= room) return label;
  // Characters of this font are at least 2 px wide.
  let kept = label.slice(-Math.floor(room / 2));
  while (kept.length > 2 && context.measureText(`…${kept}`).width > room) kept = kept.slice(1);
  return kept.length > 2 ? `…${kept}` : "";
}

/** Return the color of the role with the most weight; framework frames are gray, nodes that do not match are faint. */
function fillOf(scene: Scene, { node }: TreeBox, paints: TreeColors): number {
  const { tree, weights, found } = scene;
  const own = tree.framework[node] === 1 ? paints.framework : paints.role(weights.role[node]);
  const tinted = mixColors(own, paints.surface, paints.tints[tree.name[node] % paints.tints.length]);
  return found.highlighted === null || found.highlighted[node] === 1
    ? tinted
    : mixColors(tinted, paints.surface, paints.dimmed);
}

/** Return the text of a box: its label, those of merged ancestors, and the number of merged nodes. */
export function labelOfBox({ tree }: Scene, { node, from, own, folded }: TreeBox): string {
  if (own) return "itself";
  if (folded > 0)
    return `▸ ${folded} common frames: ${shortLabel(tree, from)} › ${folded > 2 ? "… › " : ""}${shortLabel(tree, node)}`;
  const labels: string[] = [];
  for (let at = node; at > tree.parent[from]; at = tree.parent[at]) labels.push(labelWithCount(tree, at));
  return labels.reverse().join(" › ");
}

function labelWithCount(tree: Scene["tree"], node: number): string {
  return tree.merged[node] > 1 ? `${shortLabel(tree, node)} ×${tree.merged[node]}` : shortLabel(tree, node);
}
