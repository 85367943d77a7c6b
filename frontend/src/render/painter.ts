import { layoutAges, type Wanted } from "../layout/age_columns";
import { type Ages, AgeStack } from "../layout/age_stack";
import { emptyRects, layoutTimeline, type Rects, roomForLabels, yOf } from "../layout/timeline";
import { type Blocks, emptyBlocks, type View } from "../layout/timeline_blocks";
import { buildIndex, countIn } from "../layout/timeline_index";
import type { Palette } from "./palette";
import { emptyFrame, type Frame, Raster, type Shown } from "./raster";
import { Earlier } from "./rescale";
import { exposed, moveFrame, putStrip, type Shift, shiftTo, viewOf } from "./shift";

/** What to draw a picture of: the view, the picture's size in pixels, and the least room for a label in it. */
export interface Order {
  view: View;
  width: number;
  height: number;
  palette: Palette;
  labelWidth: number;
  labelHeight: number;
}

/** Rectangles with room for a label: row numbers, and left, top, right, bottom of each in pixels. */
export interface Labels {
  rows: Int32Array;
  edges: Float32Array;
}

export interface Picture {
  frame: Frame;
  labels: Labels;
  /** What it shows: the view that was ordered, or where an earlier picture was moved, that to the nearest pixel. */
  view: View;
  /** An earlier picture that was moved or scaled, or one in fewer columns: an exact one is to be ordered later. */
  rough: boolean;
  /** Number of blocks that were drawn for it. */
  blocks: number;
}

/**
 * The parts of a picture for vector graphics: the blocks large enough to be shapes; all others as a picture that goes
 * under them; and the ground, the same picture without any block.
 */
export interface Parts {
  shapes: Rects;
  texture: Frame;
  ground: Frame;
}

/** Of fewer blocks a whole picture takes no longer than the screen does to show it. */
const LEAST_MOVED = 30_000;

/** Of fewer rows live at once in a stack by age: each can be a rectangle in every column. */
const LEAST_LIVE_MOVED = 50;

/** What there is to draw. */
interface Layer {
  /** The rectangles of a picture; where `least` is given, of those only that may be as wide. */
  lay: (wanted: Wanted) => Rects;
  /** Whether a whole picture may take longer than the screen does to show it. */
  costly: boolean;
  /** Whether a rough picture takes less, and shows less. */
  coarsens: boolean;
  /** Whether earlier pictures are to stand in for one of this view while it changes its scale. */
  scales: (view: View) => boolean;
}

/** Of pictures that are kept: the plot, the map, and the plot over the whole window. */
const MOST_SIZES = 3;

/** More labels than this are noise, and text is the slowest thing to draw. */
const MOST_LABELS = 250;

/** Draws pictures of one timeline: holds its blocks, so that an order is only a view. */
export class Painter {
  private layer = layerOf(emptyBlocks(0));
  private bands: Float64Array = new Float64Array(0);
  private lit: Uint8Array | null = null;
  private edition = 0;
  private readonly raster = new Raster();
  /** Pictures that stand in for others of the same size, by the number of their pixels: the plot's and the map's. */
  private readonly earlier = new Map<number, Earlier>();

  /** `bands`: bottom and top bytes of each region, in pairs. */
  setBlocks(blocks: Blocks, bands: Float64Array): void {
    this.show(layerOf(blocks), bands);
  }

  /** Rows stacked by age in place of blocks; `clock` as in Axis. */
  setAges(ages: Ages, clock: Float64Array | null, bands: Float64Array): void {
    this.show(layerByAge(new AgeStack(ages), clock), bands);
  }

  private show(layer: Layer, bands: Float64Array): void {
    this.layer = layer;
    this.bands = bands;
    this.edition += 1;
  }

  /** 1 for each row number to show in full colour, the others dimmed; null shows all. */
  setLit(lit: Uint8Array | null): void {
    this.lit = lit;
    this.edition += 1;
  }

  /**
   * Draws into `reuse` where it has the right size. Where it shows what is wanted but moved, and `exact` is not asked
   * for, only what comes in at the sides is drawn: so the cost of dragging does not grow with the blocks in sight. Nor
   * does that of zooming, for which earlier pictures are scaled.
   */
  paint(order: Order, reuse: Frame | null, exact = true): Picture {
    const { width, height, palette } = order;
    const fits = reuse !== null && reuse.width === width && reuse.height === height;
    const frame = fits ? reuse : emptyFrame(width, height);
    const rough = !exact && this.layer.costly;
    const shift = rough ? this.shiftOf(frame, order) : null;
    const view = shift?.view ?? order.view;
    const shows = { view, edition: this.edition, ground: palette.background };
    const scales = this.layer.scales(view);
    const scaled = rough && shift === null && scales && this.scale(frame, shows, palette);
    const blocks = scaled
      ? 0
      : shift
        ? this.move(frame, shift, palette)
        : this.draw(frame, view, palette, rough);
    frame.shows = shows;
    if (scales && shift === null && !scaled) this.earlierOf(frame).keep(frame, shows);
    const labels = this.labels(frame, { ...order, view }, rough);
    return { frame, labels, view, rough: rough && (shift !== null || scaled || this.layer.coarsens), blocks };
  }

  /** Has earlier pictures stand in; false where none could. */
  private scale(frame: Frame, shows: Shown, palette: Palette): boolean {
    const earlier = this.earlierOf(frame);
    if (!earlier.standFor(frame, shows)) return false;
    const bands = this.bandsIn(shows.view, frame.height);
    earlier.show(frame, shows.view, () => this.raster.draw(frame, emptyRects(0), bands, palette, null));
    return true;
  }

  private earlierOf({ width, height }: Frame): Earlier {
    const size = width * height;
    let found = this.earlier.get(size);
    if (found === undefined) {
      // Sizes that a window had while it was dragged are not worth their memory.
      if (this.earlier.size >= MOST_SIZES) this.earlier.clear();
      this.earlier.set(size, (found = new Earlier()));
    }
    return found;
  }

  private shiftOf({ shows }: Frame, { view, width, height, palette }: Order): Shift | null {
    if (shows === null) return null;
    if (shows.edition !== this.edition || shows.ground !== palette.background) return null;
    return shiftTo(shows.view, view, width, height);
  }

  /** Number of blocks drawn. */
  private draw(frame: Frame, view: View, palette: Palette, rough: boolean): number {
    const { width, height } = frame;
    const rects = this.layer.lay({ view, width, height, rough, lit: this.lit });
    this.raster.draw(frame, rects, this.bandsIn(view, height), palette, this.lit);
    return rects.length;
  }

  private move(frame: Frame, shift: Shift, palette: Palette): number {
    const { width, height } = frame;
    moveFrame(frame, shift);
    let blocks = 0;
    for (const strip of exposed(shift, width, height)) {
      const drawn = emptyFrame(strip.width, strip.height);
      blocks += this.draw(drawn, viewOf(strip, shift.view, width, height), palette, true);
      putStrip(frame, strip, drawn);
    }
    return blocks;
  }

  private labels(
    frame: Frame,
    { view, width, height, labelWidth, labelHeight }: Order,
    rough: boolean,
  ): Labels {
    const rects = this.layer.lay({ view, width, height, rough, least: labelWidth });
    const chosen = roomForLabels(rects, labelWidth, labelHeight, MOST_LABELS);
    return pickLabels(
      rects,
      chosen.filter((i) => isSeen(rects, i, labelWidth, frame)),
    );
  }

  /** The same picture in parts. */
  parts({ view, width, height, palette }: Order): Parts {
    const rects = this.layer.lay({ view, width, height, lit: this.lit });
    const isShape = (i: number): boolean => rects.x1[i] - rects.x0[i] >= 1 && rects.y1[i] - rects.y0[i] >= 1;
    const bands = this.bandsIn(view, height);
    const draw = (drawn: Rects): Frame => {
      const frame = emptyFrame(width, height);
      this.raster.draw(frame, drawn, bands, palette, this.lit);
      return frame;
    };
    return {
      shapes: subset(rects, isShape),
      texture: draw(subset(rects, (i) => !isShape(i))),
      ground: draw(emptyRects(0)),
    };
  }

  private bandsIn(view: View, height: number): Float64Array {
    const pixels = new Float64Array(this.bands.length);
    for (let i = 0; i < pixels.length; i += 2) {
      pixels[i] = yOf(this.bands[i + 1], view.y, height);
      pixels[i + 1] = yOf(this.bands[i], view.y, height);
    }
    return pixels;
  }
}

function layerOf(blocks: Blocks): Layer {
  const index = buildIndex(blocks);
  const rects = emptyRects(blocks.length);
  return {
    lay: ({ view, width, height, least }) => layoutTimeline(index, view, width, height, rects, least),
    costly: blocks.length >= LEAST_MOVED,
    coarsens: false,
    scales: (view) => countIn(index, view.x) >= LEAST_MOVED,
  };
}

function layerByAge(stack: AgeStack, clock: Float64Array | null): Layer {
  const rects = emptyRects(0);
  return {
    lay: (wanted) => layoutAges(stack, clock, wanted, rects),
    costly: stack.mostLive >= LEAST_LIVE_MOVED,
    coarsens: true,
    scales: () => false,
  };
}

/** Whether the place of a block's label shows the block, and not one in the same memory that was drawn after it. */
function isSeen(rects: Rects, i: number, labelWidth: number, { width, ids }: Frame): boolean {
  const x = Math.floor(rects.x0[i] + labelWidth / 2);
  const y = Math.floor((rects.y0[i] + rects.y1[i]) / 2);
  return ids[y * width + x] === rects.row[i] + 1;
}

function pickLabels(rects: Rects, chosen: number[]): Labels {
  const rows = new Int32Array(chosen.length);
  const edges = new Float32Array(chosen.length * 4);
  chosen.forEach((i, label) => {
    rows[label] = rects.row[i];
    edges.set([rects.x0[i], rects.y0[i], rects.x1[i], rects.y1[i]], label * 4);
  });
  return { rows, edges };
}

function subset(rects: Rects, keep: (i: number) => boolean): Rects {
  const kept = emptyRects(rects.length);
  for (let i = 0; i < rects.length; i++) {
    if (!keep(i)) continue;
    const to = kept.length++;
    kept.x0[to] = rects.x0[i];
    kept.x1[to] = rects.x1[i];
    kept.y0[to] = rects.y0[i];
    kept.y1[to] = rects.y1[i];
    kept.role[to] = rects.role[i];
    kept.row[to] = rects.row[i];
  }
  return kept;
}
