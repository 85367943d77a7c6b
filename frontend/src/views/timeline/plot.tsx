import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { PEAK_SNAP } from "../../base/input";
import { formatBytes, formatCount } from "../../base/units";
import { type Hole, holeAt } from "../../layout/address_map";
import { formatTime, type View, viewAround } from "../../layout/axis";
import { rowName } from "../../payload/recording/rows";
import { rowAt } from "../../render/frame/raster";
import type { DrawnPicture, TimelineRenderer } from "../../render/workers/timeline_renderer";
import { useSize } from "../browser/hooks";
import { axisTitle, useTerms } from "../data/terms";
import { GUTTER_LEFT } from "../drawing/surface";
import { store, useViewState } from "../state/view_state";
import { LABEL_HEIGHT, LABEL_WIDTH } from "./drawing/labels";
import { drawOverlay, type Marks } from "./drawing/overlay";
import {
  blockOf,
  pictureSize,
  pixelRatio,
  rowsSharing,
  type Scene,
  type TimelineColors,
  valueAt,
} from "./drawing/scene";
import { bindGestures, type GestureHost, keyView } from "./gestures";
import { HoleText } from "./holes";

/** Point in pixels of the picture. */
interface Point {
  x: number;
  y: number;
}

/** What the plot and the minimap are given. */
export interface PictureProps {
  scene: Scene;
  view: View;
  onView: (view: View) => void;
  renderer: TimelineRenderer | null;
  highlighted: Uint8Array | null;
  colors: TimelineColors;
}

interface Props extends PictureProps {
  /** What is under the pointer changed; null when it is not over the blocks. */
  onPointer: (at: Pointed | null) => void;
}

/** Plot of the blocks, with axes, labels, lines and outlines. */
export function Plot(props: Props) {
  const { scene, view, onView, renderer, highlighted, colors } = props;
  const terms = useTerms();
  const host = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const size = useSize(host);
  const [pointer, setPointer] = useState<Point | null>(null);
  const [band, setBand] = useState<Marks["band"]>(null);
  const selected = useViewState((state) => state.selected);
  const hovered = useViewState((state) => state.hovered);
  const match = useViewState((state) => state.search_match);
  const range = useViewState((state) => state.range);
  const position = useViewState((state) => state.position) ?? scene.peak;
  const sharers = useMemo(
    () => (blockOf(scene, selected) === null || selected === null ? [] : rowsSharing(scene, selected)),
    [scene, selected],
  );
  const ratio = pixelRatio();

  useLayoutEffect(() => {
    if (renderer === null || size.width === 0) return;
    const { width, height } = pictureSize(size);
    if (picture.current !== null) picture.current.ariaBusy = "true";
    renderer.paint("plot", {
      view,
      width: Math.round(width * ratio),
      height: Math.round(height * ratio),
      palette: colors.palette,
      labelWidth: LABEL_WIDTH * ratio,
      labelHeight: LABEL_HEIGHT * ratio,
    });
  }, [renderer, scene.blocks, scene.show, scene.axis, view, size, ratio, highlighted, colors]);

  // Blocks and holes are told apart by what is drawn.
  const hole = useMemo(() => {
    if (!scene.holes || pointer === null || hovered !== null) return null;
    const { along, byte } = valueAt(view, pictureSize(size), pointer.x, pointer.y);
    return holeAt(scene.rows, scene.regions, Math.floor(scene.axis.positionAt(along)), byte);
  }, [scene, pointer, hovered, view, size]);
  const beside = hole === null ? [] : [hole.above, hole.below].filter((row) => row >= 0);

  // Drawn in the view of the last picture, so that axes and outlines stay in sync with the blocks.
  const drawOver = (): void => {
    const ctx = overlay.current?.getContext("2d");
    const drawn = renderer?.drawn.plot;
    if (!ctx || !drawn) return;
    fitCanvas(ctx.canvas, size.width * ratio, size.height * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const marks = { position, range, selected, beside: [...sharers, ...beside], hovered, match, band };
    const { view: shown, labels } = drawn.picture;
    const titles = { x: axisTitle(terms, scene.axis), y: scene.stack === null ? "address" : "live, by age" };
    const look = { scene, size, ratio, highlighted, colors };
    drawOverlay(ctx, { ...look, view: shown, labels, marks, titles });
  };
  const marked = [position, range, selected, sharers, hole, hovered, match, band];
  useLayoutEffect(drawOver, [scene, size, colors, ...marked]);
  const blockUnder = (x: number, y: number): number => {
    const drawn = renderer?.drawn.plot;
    return drawn ? rowAt(drawn.picture.frame, x * ratio, y * ratio) : -1;
  };
  const rowUnder = (x: number, y: number): number | null => {
    const row = blockUnder(x, y);
    return row < 0 || row >= scene.listed ? null : row;
  };
  // Blocks can move under a pointer at rest.
  const repick = (): void => {
    if (pointer !== null) store.set({ hovered: rowUnder(pointer.x, pointer.y) });
  };
  const latest = useRef({ drawOver, repick });
  latest.current = { drawOver, repick };
  // Pictures bypass Preact: they arrive at the screen's frame rate and change nothing else on the page.
  useEffect(() => {
    renderer?.listen("plot", (drawn) => {
      if (picture.current !== null) {
        putFrame(picture.current, drawn);
        picture.current.ariaBusy = String(!renderer.isAtRest("plot"));
      }
      latest.current.repick();
      latest.current.drawOver();
    });
  }, [renderer]);

  const row = pointer === null ? -1 : blockUnder(pointer.x, pointer.y);
  useLayoutEffect(() => {
    if (pointer === null) props.onPointer(null);
    else {
      const { along, byte } = valueAt(view, pictureSize(size), pointer.x, pointer.y);
      props.onPointer({ position: scene.axis.positionAt(along), byte, row, hole });
    }
  }, [pointer, row, hole, scene, view, size]);

  // Listeners outlive a render, so they read current values from here.
  const gestures: GestureHost = {
    current: () => ({ view, extent: scene.extent, size, full: store.get().timeline_only }),
    show: onView,
    hold: () => setPointer(null),
    hover: (x, y) => {
      const { width, height } = pictureSize(size);
      const inside = x >= 0 && x < width && y >= 0 && y < height;
      setPointer(inside ? { x, y } : null);
      store.set({ hovered: inside ? rowUnder(x, y) : null });
    },
    leave: () => {
      setPointer(null);
      store.set({ hovered: null });
    },
    click: (x, y) => {
      const row = rowUnder(x, y);
      store.set({ selected: row === store.get().selected ? null : row });
    },
    doubleClick: (x, y) => {
      const row = rowUnder(x, y);
      const box = blockOf(scene, row);
      if (box !== null) store.set({ selected: row });
      onView(box === null ? scene.extent : viewAround(box, scene.extent));
    },
    select: (x0, x1) => {
      const [from, to] = [x0, x1].map((x) => valueAt(view, pictureSize(size), x, 0).along);
      store.set({ range: scene.axis.toSaved([Math.min(from, to), Math.max(from, to)]) });
    },
    inspect: (x) => {
      const { width, height } = pictureSize(size);
      const { along } = valueAt(view, { width, height }, x, 0);
      const reach = (PEAK_SNAP / width) * (view.x[1] - view.x[0]);
      const at = Math.min(Math.max(Math.floor(scene.axis.positionAt(along)), 0), scene.length - 1);
      const nearPeak = Math.abs(scene.axis.at(at) - scene.axis.at(scene.peak)) <= reach;
      store.set({ position: nearPeak ? null : at });
    },
    band: setBand,
  };
  const current = useRef(gestures);
  current.current = gestures;
  useEffect(() => {
    if (host.current === null) return;
    return bindGestures(host.current, () => current.current);
  }, []);

  const chosen = match ?? hovered;
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = keyView(event, view, scene.extent);
    if (next !== null) onView(next);
    else if (event.key === "Enter" && chosen !== null && chosen < scene.listed)
      store.set({ selected: chosen });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const inner = pictureSize(size);
  return (
    <div
      ref={host}
      class="timeline-plot"
      data-testid="timeline-plot"
      tabindex={0}
      role="application"
      aria-label={
        `Allocation timeline: ${formatCount(scene.listed)} ${terms.items} over ${formatCount(scene.length)} ` +
        `${terms.positions}. Arrow keys pan, plus and minus zoom, as do W, A, S and D; n steps through the ` +
        `matches or the ${terms.items} at the inspected ${terms.position}, Enter selects.`
      }
      onKeyDown={onKeyDown}
    >
      <canvas
        ref={picture}
        class="timeline-picture"
        data-testid="timeline-picture"
        style={{ left: `${GUTTER_LEFT}px`, width: `${inner.width}px`, height: `${inner.height}px` }}
      />
      <canvas ref={overlay} class="timeline-overlay" data-testid="timeline-overlay" />
    </div>
  );
}

function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): void {
  const [across, down] = [Math.round(width), Math.round(height)];
  // Setting the size clears the canvas and allocates a new buffer.
  if (canvas.width !== across) canvas.width = across;
  if (canvas.height !== down) canvas.height = down;
}

/** Show a picture. It shares the frame's memory: the canvas makes the only copy. */
export function putFrame(canvas: HTMLCanvasElement, { picture: { frame } }: DrawnPicture): void {
  fitCanvas(canvas, frame.width, frame.height);
  const bytes = new Uint8ClampedArray(frame.pixels.buffer);
  canvas.getContext("2d")?.putImageData(new ImageData(bytes, frame.width, frame.height), 0, 0);
}

/** What is under the pointer. */
export interface Pointed {
  position: number;
  byte: number;
  /** A row, also one of live bytes that no table lists; -1 for none. */
  row: number;
  hole: Hole | null;
}

/** Status line below the plot: what is under the pointer. */
export function PointerText(props: {
  scene: Scene;
  at: Pointed | null;
  /** The charts fill the window. */
  full: boolean;
}) {
  const { scene, at, full } = props;
  const terms = useTerms();
  if (at === null)
    return (
      <span class="muted">
        {full ? "Wheel" : "Ctrl + wheel"}: zoom · drag: pan or zoom, on the axis select a range · click: keep
        in the panel
      </span>
    );
  const position = Math.min(Math.max(Math.floor(at.position), 0), scene.length - 1);
  const { program } = scene;
  const known = position < program.length;
  const times = program.time_ns;
  const { rows } = scene;
  return (
    <span>
      {at.row >= 0 && (
        <b>
          {rowName(rows, at.row) || `unnamed ${terms.item}`}, {formatBytes(rows.size[at.row])}{" "}
        </b>
      )}
      {at.hole !== null && <HoleText scene={scene} hole={at.hole} />}
      <span class="muted">at </span>
      {formatCount(position)}
      {times !== null && known && `, ${formatTime(times[position])}`}
      {known && <code> {program.name.at(position)}</code>}
      {known && program.op_name.at(position) !== "" && (
        <span class="muted"> {program.op_name.at(position)}</span>
      )}
      <span class="muted"> · byte {formatBytes(Math.max(at.byte, 0))}</span>
    </span>
  );
}
