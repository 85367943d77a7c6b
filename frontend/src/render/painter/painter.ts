import type { View } from "../../layout/axis";
import { layoutAgeStack, type LayoutRequest } from "../../layout/stacking/age_columns";
import { AgeStack, type RowsByAge } from "../../layout/stacking/age_stack";
import { type Blocks, countInWindow, emptyBlocks, indexBlocks } from "../../layout/timeline/blocks";
import { emptyRects, labelCandidates, layoutTimeline, type Rects, yPixel } from "../../layout/timeline/rects";
import {
  exposedStrips,
  findShift,
  moveFrame,
  putStrip,
  type Shift,
  stripView,
  ZoomCache,
} from "../frame/frame_cache";
import type { Palette } from "../frame/palette";
import { emptyFrameBuffer, type FrameBuffer, type FrameSource, Raster } from "../frame/raster";
import {
  isLabelVisible,
  type Labels,
  type PaintOrder,
  pickLabels,
  type Picture,
  selectRects,
  type VectorParts,
} from "./picture";

/** With fewer blocks, drawing a whole picture takes no longer than a screen refresh. */
const MIN_COSTLY_BLOCKS = 30_000;

/** The same limit for rows live at once in an age stack, where each can have a rectangle in every column. */
const MIN_COSTLY_LIVE = 50;

/** Contents of a picture: blocks, or an age stack. */
interface PaintLayer {
  /** Return the rectangles of a picture; with `minWidth`, only those that may be that wide. */
  layout: (wanted: LayoutRequest) => Rects;
  /** Whether drawing a whole picture may take longer than a screen refresh. */
  costly: boolean;
  /** Whether a rough picture takes less time and shows less detail. */
  coarsens: boolean;
  /** Return whether cached pictures replace pictures of this view while it is zoomed. */
  scales: (view: View) => boolean;
}

function blockLayer(blocks: Blocks): PaintLayer {
  const index = indexBlocks(blocks);
  const rects = emptyRects(blocks.length);
  return {
    layout: ({ view, width, height, minWidth }) =>
      layoutTimeline(index, view, width, height, rects, minWidth),
    costly: blocks.length >= MIN_COSTLY_BLOCKS,
    coarsens: false,
    scales: (view) => countInWindow(index, view.x) >= MIN_COSTLY_BLOCKS,
  };
}

function ageLayer(stack: AgeStack, clock: Float64Array | null): PaintLayer {
  const rects = emptyRects(0);
  return {
    layout: (wanted) => layoutAgeStack(stack, clock, wanted, rects),
    costly: stack.maxLive >= MIN_COSTLY_LIVE,
    coarsens: true,
    scales: () => false,
  };
}

/** Number of picture sizes to cache: the plot, the minimap, and the full-window plot. */
const MAX_SIZES = 3;

/** More labels are noise, and text is the slowest thing to draw. */
const MAX_LABELS = 250;

/** Draws pictures of one timeline. It keeps the blocks, so that an order contains only a view. */
export class Painter {
  private layer = blockLayer(emptyBlocks(0));
  private bands: Float64Array = new Float64Array(0);
  private highlighted: Uint8Array | null = null;
  private edition = 0;
  private readonly raster = new Raster();
  /** Caches for the pictures of the plot and of the minimap, by number of pixels. */
  private readonly zoomCaches = new Map<number, ZoomCache>();

  /** `bands`: bottom and top bytes of each region, in pairs. */
  setBlocks(blocks: Blocks, bands: Float64Array): void {
    this.setLayer(blockLayer(blocks), bands);
  }

  /** Draw an age stack instead of blocks; `clock` as in Axis. */
  setRowsByAge(ages: RowsByAge, clock: Float64Array | null, bands: Float64Array): void {
    this.setLayer(ageLayer(new AgeStack(ages), clock), bands);
  }

  private setLayer(layer: PaintLayer, bands: Float64Array): void {
    this.layer = layer;
    this.bands = bands;
    this.edition += 1;
  }

  /** 1 for each row to show in full color, the others are dimmed; null shows all. */
  setHighlighted(highlighted: Uint8Array | null): void {
    this.highlighted = highlighted;
    this.edition += 1;
  }

  /**
   * Draw a picture, into `reuse` if it has the right size. Unless `exact` is set, a moved view draws only the
   * exposed strips, and a zoomed view scales cached pictures. The cost of dragging and zooming is then
   * independent of the number of visible blocks.
   */
  paint(order: PaintOrder, reuse: FrameBuffer | null, exact = true): Picture {
    const { width, height, palette } = order;
    const fits = reuse !== null && reuse.width === width && reuse.height === height;
    const frame = fits ? reuse : emptyFrameBuffer(width, height);
    const rough = !exact && this.layer.costly;
    const shift = rough ? this.findShift(frame, order) : null;
    const view = shift?.view ?? order.view;
    const shows = { view, edition: this.edition, ground: palette.background };
    const scales = this.layer.scales(view);
    const scaled = rough && shift === null && scales && this.scale(frame, shows, palette);
    const blocks = scaled
      ? 0
      : shift
        ? this.move(frame, shift, palette)
        : this.draw(frame, view, palette, rough);
    frame.source = shows;
    if (scales && shift === null && !scaled) this.zoomCacheFor(frame).keep(frame, shows);
    const labels = this.labels(frame, { ...order, view }, rough);
    return { frame, labels, view, rough: rough && (shift !== null || scaled || this.layer.coarsens), blocks };
  }

  /** Draw from cached pictures; return false if none is usable. */
  private scale(frame: FrameBuffer, shows: FrameSource, palette: Palette): boolean {
    const earlier = this.zoomCacheFor(frame);
    if (!earlier.canReplace(frame, shows)) return false;
    const bands = this.bandsIn(shows.view, frame.height);
    earlier.show(frame, shows.view, () => this.raster.draw(frame, emptyRects(0), bands, palette, null));
    return true;
  }

  private zoomCacheFor({ width, height }: FrameBuffer): ZoomCache {
    const size = width * height;
    let found = this.zoomCaches.get(size);
    if (found === undefined) {
      // Sizes from resizing the window are not worth their memory.
      if (this.zoomCaches.size >= MAX_SIZES) this.zoomCaches.clear();
      this.zoomCaches.set(size, (found = new ZoomCache()));
    }
    return found;
  }

  private findShift({ source }: FrameBuffer, { view, width, height, palette }: PaintOrder): Shift | null {
    if (source === null) return null;
    if (source.edition !== this.edition || source.ground !== palette.background) return null;
    return findShift(source.view, view, width, height);
  }

  /** Return the number of blocks drawn. */
  private draw(frame: FrameBuffer, view: View, palette: Palette, rough: boolean): number {
    const { width, height } = frame;
    const rects = this.layer.layout({ view, width, height, rough, highlighted: this.highlighted });
    this.raster.draw(frame, rects, this.bandsIn(view, height), palette, this.highlighted);
    return rects.length;
  }

  private move(frame: FrameBuffer, shift: Shift, palette: Palette): number {
    const { width, height } = frame;
    moveFrame(frame, shift);
    let blocks = 0;
    for (const strip of exposedStrips(shift, width, height)) {
      const drawn = emptyFrameBuffer(strip.width, strip.height);
      blocks += this.draw(drawn, stripView(strip, shift.view, width, height), palette, true);
      putStrip(frame, strip, drawn);
    }
    return blocks;
  }

  private labels(
    frame: FrameBuffer,
    { view, width, height, labelWidth, labelHeight }: PaintOrder,
    rough: boolean,
  ): Labels {
    const rects = this.layer.layout({ view, width, height, rough, minWidth: labelWidth });
    const roomy = labelCandidates(rects, labelWidth, labelHeight, MAX_LABELS);
    const chosen = roomy.filter((i) => isLabelVisible(rects, i, labelWidth, frame));
    return pickLabels(rects, chosen);
  }

  /** Draw the picture in parts, for vector graphics. */
  paintParts({ view, width, height, palette }: PaintOrder): VectorParts {
    const rects = this.layer.layout({ view, width, height, highlighted: this.highlighted });
    const isShape = (i: number): boolean => rects.x1[i] - rects.x0[i] >= 1 && rects.y1[i] - rects.y0[i] >= 1;
    const bands = this.bandsIn(view, height);
    const draw = (drawn: Rects): FrameBuffer => {
      const frame = emptyFrameBuffer(width, height);
      this.raster.draw(frame, drawn, bands, palette, this.highlighted);
      return frame;
    };
    return {
      shapes: selectRects(rects, isShape),
      texture: draw(selectRects(rects, (i) => !isShape(i))),
      ground: draw(emptyRects(0)),
    };
  }

  private bandsIn(view: View, height: number): Float64Array {
    const pixels = new Float64Array(this.bands.length);
    for (let i = 0; i < pixels.length; i += 2) {
      pixels[i] = yPixel(this.bands[i + 1], view.y, height);
      pixels[i + 1] = yPixel(this.bands[i], view.y, height);
    }
    return pixels;
  }
}
