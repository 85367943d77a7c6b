import { useEffect, useRef } from "preact/hooks";
import type { View } from "../../layout/axis";
import { centerOn, dragView, isInside, windowOnMap } from "../../layout/timeline/minimap";
import { useSize } from "../browser/hooks";
import { pixelRatio } from "./drawing/scene";
import { type PictureProps, putFrame } from "./plot";

const HEIGHT = 26;

/** Overview of the full extent; the visible range can be dragged. */
export function Minimap({ scene, view, onView, renderer, highlighted, colors }: PictureProps) {
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const press = useRef<{ x: number; y: number; view: View } | null>(null);
  const { width } = useSize(host);
  const { extent } = scene;

  useEffect(() => {
    if (renderer === null || width === 0) return;
    const ratio = pixelRatio();
    renderer.paint("map", {
      view: extent,
      width: Math.round(width * ratio),
      height: Math.round(HEIGHT * ratio),
      palette: colors.palette,
      labelWidth: Infinity,
      labelHeight: Infinity,
    });
  }, [renderer, scene.blocks, scene.show, scene.axis, extent, width, highlighted, colors]);
  useEffect(() => {
    renderer?.listen("map", (drawn) => canvas.current !== null && putFrame(canvas.current, drawn));
  }, [renderer]);

  const place = windowOnMap(view, extent, width, HEIGHT);
  const onPointerDown = (event: PointerEvent): void => {
    if (event.button !== 0 || host.current === null) return;
    const box = host.current.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const from = isInside(place, x, y) ? view : centerOn(view, extent, x, y, width, HEIGHT);
    host.current.setPointerCapture(event.pointerId);
    press.current = { x: event.clientX, y: event.clientY, view: from };
    onView(from);
  };
  const onPointerMove = (event: PointerEvent): void => {
    const held = press.current;
    if (held === null) return;
    onView(dragView(held.view, extent, event.clientX - held.x, event.clientY - held.y, width, HEIGHT));
  };
  const onPointerUp = (): void => {
    press.current = null;
  };
  return (
    <div
      ref={host}
      class="timeline-map"
      data-testid="timeline-minimap"
      aria-hidden="true"
      style={{ height: `${HEIGHT}px` }}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={onPointerUp}
      onPointerCancel={onPointerUp}
      onDblClick={() => onView(extent)}
    >
      <canvas ref={canvas} />
      <i
        class="timeline-window"
        style={{
          left: `${place.x}px`,
          top: `${place.y}px`,
          width: `${place.width}px`,
          height: `${place.height}px`,
        }}
      />
    </div>
  );
}
