import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type TreeBox, boxAt } from "../../../layout/tree/flame";
import { shortLabel } from "../../../layout/tree/tree";
import { useWidth } from "../../browser/use_width";
import { useTerms } from "../../data/terms";
import { HoverCard } from "./hover_card";
import type { Picture } from "../../drawing/picture";
import { withLightTheme } from "../../drawing/picture";
import { SavePicture } from "../../drawing/save_picture";
import { drawTree, paintTree } from "./paint";
import { readTreeColors } from "./tree_colors";
import type { Scene } from "../scene/scene";
import type { Actions } from "../scene/actions";
import { describe } from "./describe";
import { nodeBeside, onTreeKey, stepIn, stepOut } from "./keys";
import { bindSteps } from "./gestures";

interface Props {
  scene: Scene;
  actions: Actions;
  /** Place the boxes in a picture of this width. */
  layout: (width: number) => TreeBox[];
  height: number;
  nested: boolean;
  /** Children are above their parents. */
  upward?: boolean;
  /** Show the frames that a folded box stands for. */
  onUnfold?: () => void;
  /** True if rows have roles, which colors show. */
  roles: boolean;
  label: string;
  /** Name of saved pictures, without suffix. */
  fileName: string;
  testid: string;
  dark: boolean;
}

/** Tree as boxes on a canvas, with keyboard navigation and a description of each node for screen readers. */
export function TreeCanvas(props: Props): JSX.Element {
  const { scene, actions, layout, height, nested, roles, dark, testid, upward = false } = props;
  const terms = useTerms();
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(host);
  const [pointer, setPointer] = useState<{ box: TreeBox; x: number; y: number } | null>(null);
  const [focus, setFocus] = useState<number | null>(null);
  const boxes = useMemo(() => layout(width), [layout, width]);
  const focused = focus ?? scene.top;

  useLayoutEffect(() => {
    if (canvas.current === null || width === 0) return;
    paintTree(canvas.current, { scene, boxes, paints: readTreeColors(dark, roles), width, height, nested });
  }, [scene, boxes, dark, roles, width, height, nested]);
  // The hovered or focused node may be missing or elsewhere in another picture.
  useLayoutEffect(() => setPointer(null), [boxes]);
  useLayoutEffect(() => setFocus(null), [scene.tree, scene.top]);

  const move = (event: MouseEvent): void => {
    const box = boxAt(boxes, event.offsetX, event.offsetY);
    setPointer(box === null ? null : { box, x: event.offsetX, y: event.offsetY });
  };
  const press = (event: MouseEvent): void => {
    const box = boxAt(boxes, event.offsetX, event.offsetY);
    if (box === null) return;
    if (box.folded > 0 && !event.shiftKey) props.onUnfold?.();
    else actions.press(box, event.shiftKey);
  };
  const walk = (event: KeyboardEvent): void => {
    const to = onTreeKey(event, scene, focused, actions, upward);
    if (to !== null) goTo(to);
  };
  const goTo = (to: number): void => {
    setFocus(to);
    const box = boxes.find(({ node, gathered, own }) => node === to && gathered === 0 && !own);
    if (box !== undefined && host.current !== null) scrollTo(host.current, box);
  };

  const zoomTo = (to: number): void => {
    if (to !== scene.top) actions.zoom(to);
  };
  const steps = {
    in: () => zoomTo(stepIn(scene, pointer?.box.node ?? focused)),
    out: () => zoomTo(stepOut(scene)),
    beside: (by: number) => goTo(nodeBeside(scene, focused, by)),
  };
  const latest = useRef(steps);
  latest.current = steps;
  useEffect(() => (host.current === null ? undefined : bindSteps(host.current, latest)), []);

  const draw = (): Picture | null =>
    width === 0
      ? null
      : withLightTheme(document.body, (holder) =>
          drawTree(
            { scene, boxes, paints: readTreeColors(false, roles, holder), width, height, nested },
            roles,
          ),
        );

  const id = `${testid}-focused`;
  return (
    <div class="tree-canvas">
      <div
        ref={host}
        class="tree-host"
        role="tree"
        tabindex={0}
        aria-label={`${props.label}. Arrows move, Enter zooms, Escape zooms out, o filters all charts by the node, c shows its callers and callees.`}
        aria-activedescendant={id}
        data-testid={testid}
        style={{ height: `${height}px` }}
        onKeyDown={walk}
      >
        <canvas
          ref={canvas}
          style={{ height: `${height}px` }}
          onMouseMove={move}
          onMouseLeave={() => setPointer(null)}
          onClick={press}
        />
        <Outline boxes={boxes} node={scene.selected} scene={scene} kind="selected" />
        <Outline boxes={boxes} node={focused} scene={scene} kind="focused" />
        {pointer !== null && <Frame box={pointer.box} kind="hovered" />}
        {boxes.length === 0 && width > 0 && (
          <p class="muted tree-nothing">
            Nothing {scene.top === 0 ? "" : `of ${shortLabel(scene.tree, scene.top)} `}is {terms.live} here.
          </p>
        )}
        <div id={id} class="read-out" {...describe(scene, focused)} />
      </div>
      {pointer !== null && (
        <HoverCard
          scene={scene}
          box={pointer.box}
          x={pointer.x}
          y={pointer.y}
          width={width}
          actions={actions}
        />
      )}
      <footer class="tree-foot">
        <SavePicture of={testid.replace("-", " ")} fileName={`${props.fileName}-${testid}`} draw={draw} />
      </footer>
    </div>
  );
}

interface OutlineProps {
  boxes: readonly TreeBox[];
  node: number;
  scene: Scene;
  kind: string;
}

/** Outline the box of a node, or of its nearest ancestor that is drawn. */
function Outline({ boxes, node, scene, kind }: OutlineProps): JSX.Element | null {
  const drawn = useMemo(() => {
    if (node < 0) return null;
    const { parent } = scene.tree;
    const byNode = new Map<number, TreeBox>();
    for (const box of boxes)
      if (box.gathered === 0 && !box.own)
        for (let at = box.node; at > parent[box.from]; at = parent[at]) byNode.set(at, box);
    for (let at = node; at >= 0; at = parent[at]) {
      const box = byNode.get(at);
      if (box !== undefined) return box;
    }
    return null;
  }, [boxes, node, scene]);
  return drawn === null ? null : <Frame box={drawn} kind={kind} />;
}

function Frame({ box, kind }: { box: TreeBox; kind: string }): JSX.Element {
  const { x, y, width, height } = box;
  const style = {
    transform: `translate(${x}px, ${y}px)`,
    width: `${Math.max(width - 1, 3)}px`,
    height: `${Math.max(height - 1, 3)}px`,
  };
  return <i class={`box-frame ${kind}`} style={style} />;
}

/** Scroll the page to a box, where it is not visible. */
function scrollTo(host: HTMLElement, box: TreeBox): void {
  const top = host.getBoundingClientRect().top + box.y;
  const below = top + box.height - window.innerHeight;
  if (top < 0 || below > 0) window.scrollBy(0, top < 0 ? top - box.height : below + box.height);
}
