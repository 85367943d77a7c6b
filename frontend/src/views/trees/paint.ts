import { cssColor, inkOn, roleColors } from "../../base/colors";
import type { TreeBox } from "../../layout/tree/flame";
import { shortLabel } from "../../layout/tree/tree";
import { mixPixels } from "../../render/frame/palette";
import { type Picture, roleLegend } from "../drawing/picture";
import {
  CHART_FONT,
  colorReader,
  fitText,
  HATCH,
  hatchDefinition,
  sizedContext,
  type Surface,
  SvgSurface,
} from "../drawing/surface";
import type { Scene } from "./scene";

/** Colors of a tree as 0xRRGGBB. */
interface TreeColors {
  surface: number;
  role: (role: number) => number;
  framework: number;
  /** Alternating shares of the background in adjacent boxes of one color. */
  tints: readonly number[];
  /** Share of the background in a box that does not match the search. */
  dimmed: number;
  /** Share of the background in a box with children, so that the children stand out. */
  around: number;
  /** Spacing of the hatching over nodes that are too small to draw. */
  hatch: string;
}

/** Return the colors of the page. Without roles, all boxes have one color that stands for no role. */
export function readTreeColors(dark: boolean, roles: boolean, page = document.documentElement): TreeColors {
  const read = colorReader(page);
  const surface = read("--surface", dark ? 0x1a1d21 : 0xffffff);
  const muted = read("--muted", 0x808080);
  const plain = mixColors(read("--accent", 0x2f6fb3), surface, 0.32);
  const colors = roleColors(dark);
  return {
    surface,
    role: (role) => (roles ? (colors[role] ?? muted) : plain),
    framework: mixColors(muted, surface, 0.55),
    tints: [0, 0.16, 0.08, 0.24],
    dimmed: 0.8,
    around: 0.6,
    hatch: cssColor(mixColors(muted, surface, 0.45)),
  };
}

/** Mix `from` with a share of `to`. */
export function mixColors(from: number, to: number, share: number): number {
  return mixPixels(from, to, share) & 0xffffff;
}

/** Return a canvas pattern of hatching. */
export function hatchPattern(context: CanvasRenderingContext2D, color: string): CanvasPattern | string {
  const tile = new OffscreenCanvas(6, 6);
  const lines = tile.getContext("2d");
  if (lines === null) return color;
  lines.strokeStyle = color;
  for (const shift of [-6, 0, 6]) {
    lines.moveTo(shift - 1, 7);
    lines.lineTo(shift + 7, -1);
  }
  lines.stroke();
  return context.createPattern(tile, "repeat") ?? color;
}

interface TreePicture {
  scene: Scene;
  boxes: readonly TreeBox[];
  paints: TreeColors;
  /** Size of the picture in CSS pixels. */
  width: number;
  height: number;
  /** Nested boxes (treemap) or rows of boxes (flame graph). */
  nested: boolean;
}

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
  surface.font = CHART_FONT;
  const { parent } = picture.scene.tree;
  // The nodes that contain boxes.
  const holders = picture.boxes.map(({ from, gathered, own }) => (gathered > 0 || own ? from : parent[from]));
  const around = new Set(picture.nested ? holders : []);
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
  // Paths differ at the end.
  const isPath = label.includes("/") && !label.includes(" ");
  const drawn = isPath ? fitEnd(context, label, room) : fitText(context, label, room);
  context.fillText(drawn, left, middle);
  context.globalAlpha = 0.72;
  const after = context.measureText(drawn).width + 8;
  // A box without children has room for a second line.
  if (after + context.measureText(weight).width <= room) context.fillText(weight, left + after, middle);
  else if (nested && height >= 2.2 * LINE && context.measureText(weight).width <= room)
    context.fillText(weight, left, middle + LINE);
  context.globalAlpha = 1;
}

/** Shorten a label at the start. */
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
  if (folded > 0) {
    const between = folded > 2 ? "… › " : "";
    return `▸ ${folded} common frames: ${shortLabel(tree, from)} › ${between}${shortLabel(tree, node)}`;
  }
  const labels: string[] = [];
  for (let at = node; at > tree.parent[from]; at = tree.parent[at]) labels.push(labelWithCount(tree, at));
  return labels.reverse().join(" › ");
}

function labelWithCount(tree: Scene["tree"], node: number): string {
  return tree.merged[node] > 1 ? `${shortLabel(tree, node)} ×${tree.merged[node]}` : shortLabel(tree, node);
}
