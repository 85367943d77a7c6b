import { byteTicks } from "../../../layout/axis/ticks";
import { xPixel, yPixel } from "../../../layout/timeline/rects";
import { formatBytes } from "../../../base/units";
import type { PaintOrder, VectorParts } from "../../../render/painter/picture";
import type { TimelineRenderer } from "../../../render/workers/timeline_renderer";
import { rgbOf } from "../../../render/frame/palette";
import { blockShapes, escapeXml, textureShapes } from "../../../render/painter/svg";
import { saveBlob } from "../../browser/save_file";
import type { TimelineColors } from "./colors";
import { GUTTER_LEFT, GUTTER_RIGHT } from "../../drawing/gutters";
import { AXIS_HEIGHT, pixelRatio } from "./geometry";
import { shorten } from "./labels";
import type { Scene } from "./scene";

interface SaveParts {
  root: HTMLElement;
  scene: Scene;
  renderer: TimelineRenderer;
  /** Rows that match the search, as in Painter.setLit. */
  highlighted: Uint8Array | null;
  colors: TimelineColors;
}

/** Download the visible part of the plot. */
export async function savePicture(format: "png" | "svg", saved: SaveParts): Promise<void> {
  const blob = format === "png" ? await pngOf(saved) : await svgOf(saved);
  saveBlob(blob, `allocation-timeline.${format}`);
}

/** Return both canvases of the plot, combined on the page's background. */
async function pngOf({ root, colors }: SaveParts): Promise<Blob> {
  const picture = root.querySelector<HTMLCanvasElement>(".timeline-picture");
  const overlay = root.querySelector<HTMLCanvasElement>(".timeline-overlay");
  const canvas = document.createElement("canvas");
  const ctx = canvas.getContext("2d");
  if (picture === null || overlay === null || ctx === null) throw new Error("There is nothing to save yet.");
  canvas.width = overlay.width;
  canvas.height = overlay.height;
  ctx.fillStyle = colors.surface;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.drawImage(picture, GUTTER_LEFT * pixelRatio(), 0);
  ctx.drawImage(overlay, 0, 0);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) =>
      blob === null ? reject(new Error("The browser could not create a PNG.")) : resolve(blob),
    );
  });
}

async function svgOf({ scene, renderer, highlighted, colors }: SaveParts): Promise<Blob> {
  // The order that drew the current picture.
  const order = renderer.drawn.plot?.order;
  if (order === undefined) throw new Error("There is nothing to save yet.");
  const ratio = pixelRatio();
  const size = { width: Math.round(order.width / ratio), height: Math.round(order.height / ratio) };
  const parts = await renderer.parts({ ...order, ...size });
  return new Blob([svgText(scene, order, size, parts, highlighted, colors)], { type: "image/svg+xml" });
}

function svgText(
  scene: Scene,
  { view, palette }: PaintOrder,
  { width, height }: { width: number; height: number },
  parts: VectorParts,
  highlighted: Uint8Array | null,
  colors: TimelineColors,
): string {
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
  const all = [width + GUTTER_LEFT + GUTTER_RIGHT, height + AXIS_HEIGHT].join(" ");
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${all}" font-family="sans-serif" font-size="11">`,
    `<rect width="100%" height="100%" fill="${colors.surface}"/>`,
    `<g transform="translate(${GUTTER_LEFT} 0)" shape-rendering="crispEdges">`,
    ...grounds,
    ...textureShapes(parts.texture, parts.ground),
    ...blockShapes(parts.shapes, palette, highlighted, titleOf),
    `</g><g transform="translate(${GUTTER_LEFT} 0)" fill="${colors.ink}">`,
    ...peakLine(xPixel(scene.axis.mark(scene.peak), view.x, width), width, height, colors.ink),
    ...nameTexts(parts, (row) => rows.name.at(row)),
    `</g><g fill="${colors.muted}">`,
    ...byteTicks(view.y, height / 36).map(
      ({ value, label }) =>
        `<text x="${GUTTER_LEFT - 7}" y="${yPixel(value, view.y, height) + 4}" text-anchor="end">${label}</text>`,
    ),
    ...scene.axis
      .ticks(view.x, width / 110)
      .map(
        ({ value, label }) =>
          `<text x="${GUTTER_LEFT + xPixel(value, view.x, width)}" y="${height + 16}" text-anchor="middle">${label}</text>`,
      ),
    `</g></svg>`,
  ].join("\n");
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
