import { formatBytes } from "../../../base/units";
import { byteTicks, labelCenter } from "../../../layout/axis";
import { hasBlock } from "../../../layout/timeline/blocks";
import { xPixel, yPixel } from "../../../layout/timeline/rects";
import { hasStack } from "../../../layout/usage/live_set";
import { ROLES } from "../../../payload/generated/constants";
import { rgbOf } from "../../../render/frame/palette";
import type { FrameBuffer } from "../../../render/frame/raster";
import {
  blockShapes,
  escapeXml,
  type PaintOrder,
  textureShapes,
  type VectorParts,
} from "../../../render/painter/picture";
import type { TimelineRenderer } from "../../../render/workers/timeline_renderer";
import { type LegendEntry, type Picture, roleLegend, withLightTheme } from "../../drawing/picture";
import { GUTTER_LEFT, GUTTER_RIGHT, shorten } from "../../drawing/surface";
import { AXIS_HEIGHT, pixelRatio, readColors, type Scene, type TimelineColors } from "./scene";

interface SaveParts {
  scene: Scene;
  renderer: TimelineRenderer;
  /** Rows that match the search, as in Painter.setLit. */
  highlighted: Uint8Array | null;
}

/**
 * Draw the visible part of the plot for a file, in the colors of the light theme. With `image`, blocks too small to be
 * shapes are an image, which is drawn faster than as many shapes.
 */
export async function drawTimeline(saved: SaveParts, image: boolean): Promise<Picture> {
  const { scene, renderer, highlighted } = saved;
  // The order that drew the current picture.
  const order = renderer.drawn.plot?.order;
  if (order === undefined) throw new Error("There is nothing to save yet.");
  const ratio = pixelRatio();
  const width = Math.round(order.width / ratio);
  const height = Math.round(order.height / ratio);
  const colors = withLightTheme(document.body, (holder) => readColors(false, holder));
  const light = { ...order, width, height, palette: colors.palette };
  const parts = await renderer.parts(light);
  const texture = image ? [imageOf(parts.texture)] : textureShapes(parts.texture, parts.ground);
  return {
    width: width + GUTTER_LEFT + GUTTER_RIGHT,
    height: height + AXIS_HEIGHT,
    shapes: shapesOf(scene, light, parts, texture, highlighted, colors),
    legend: pictureLegend(scene),
  };
}

function imageOf({ width, height, pixels }: FrameBuffer): string {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const bytes = new Uint8ClampedArray(pixels.buffer, pixels.byteOffset, pixels.byteLength);
  canvas.getContext("2d")?.putImageData(new ImageData(bytes, width, height), 0, 0);
  return `<image width="${width}" height="${height}" href="${canvas.toDataURL()}"/>`;
}

function shapesOf(
  scene: Scene,
  { view, palette, width, height }: PaintOrder,
  parts: VectorParts,
  texture: readonly string[],
  highlighted: Uint8Array | null,
  colors: TimelineColors,
): string[] {
  const { rows, regions } = scene;
  const titleOf = (row: number): string =>
    `${rows.name.at(row)}\n${formatBytes(rows.size[row])} ${rows.shape.at(row)}\n${rows.op_name.at(row)}`;
  const bands = Array.from({ length: regions.length }, (_, region) => region).filter(
    (region) => scene.show === "all" || regions.temporary[region] !== 0,
  );
  const region = `#${rgbOf(palette.region).toString(16).padStart(6, "0")}`;
  const grounds = bands.map((number) => {
    const top = Math.max(yPixel(regions.base[number] + regions.size[number], view.y, height), 0);
    const bottom = Math.min(yPixel(regions.base[number], view.y, height), height);
    return bottom <= top
      ? ""
      : `<rect y="${top}" width="${width}" height="${bottom - top}" fill="${region}"/>`;
  });
  return [
    `<g font-size="11"><g transform="translate(${GUTTER_LEFT} 0)" shape-rendering="crispEdges">`,
    ...grounds,
    ...texture,
    ...blockShapes(parts.shapes, palette, highlighted, titleOf),
    `</g><g transform="translate(${GUTTER_LEFT} 0)" fill="${colors.ink}">`,
    ...peakLine(xPixel(scene.axis.mark(scene.peak), view.x, width), width, height, colors.ink),
    ...nameTexts(parts, (row) => rows.name.at(row)),
    `</g><g fill="${colors.muted}">`,
    ...byteTicks(view.y, height / 36).map(
      ({ value, label }) =>
        `<text x="${GUTTER_LEFT - 7}" y="${yPixel(value, view.y, height) + 4}" text-anchor="end">${label}</text>`,
    ),
    ...scene.axis.ticks(view.x, width / 110).map(({ value, label }) => {
      const x = GUTTER_LEFT + xPixel(value, view.x, width);
      const center = labelCenter(x, LETTER * label.length, GUTTER_LEFT + width + GUTTER_RIGHT);
      return `<text x="${center}" y="${height + 16}" text-anchor="middle">${label}</text>`;
    }),
    `</g></g>`,
  ];
}

function peakLine(x: number, width: number, height: number, ink: string): string[] {
  if (x < 0 || x > width) return [];
  return [
    `<path d="M${x} 0v${height}" stroke="${ink}" stroke-dasharray="3 3"/>`,
    `<text x="${x + 4}" y="11">peak</text>`,
  ];
}

/** Average character width of the font is 6.5 pixels. */
const LETTER = 6.5;

function nameTexts({ shapes }: VectorParts, nameOf: (row: number) => string): string[] {
  const texts: string[] = [];
  for (let i = 0; i < shapes.length; i++) {
    const letters = Math.floor((shapes.x1[i] - shapes.x0[i] - 8) / LETTER);
    if (letters < 5 || shapes.y1[i] - shapes.y0[i] < 14) continue;
    const text = escapeXml(shorten(nameOf(shapes.row[i]), letters));
    const middle = (shapes.y0[i] + shapes.y1[i]) / 2 + 4;
    texts.push(`<text x="${shapes.x0[i] + 4}" y="${middle}">${text}</text>`);
  }
  return texts;
}

/** Return the legend of a saved picture. */
function pictureLegend(scene: Scene): LegendEntry[] {
  const roles = rolesOf(scene);
  return roles.every((role) => role === 0) ? [{ color: "", label: legendOf(scene) }] : roleLegend(roles);
}

/** Legend for recordings without roles, where colors stand for sizes. */
function legendOf({ program, holes }: Scene): string {
  const stack = !hasStack(program) ? "" : holes ? "; the stack has no address" : ", and stack";
  return `the stronger the color, the larger; gray: live before the recording${stack}`;
}

function rolesOf({ rows, regions, show }: Scene): number[] {
  const seen = new Set<number>();
  for (let row = 0; row < rows.length && seen.size < ROLES.length; row++)
    if (hasBlock(rows, regions, row, show)) seen.add(rows.role[row]);
  return [...seen].sort((a, b) => a - b);
}
