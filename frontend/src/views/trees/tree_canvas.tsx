import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCount, formatCounted, formatShare } from "../../base/units";
import { boxAt, type TreeBox } from "../../layout/tree/flame";
import { labelOf, pathNodes, shortFrame, shortLabel } from "../../layout/tree/tree";
import { ROLES } from "../../payload/generated/constants";
import { useWidth } from "../browser/hooks";
import { useTerms } from "../data/terms";
import { type Picture, withLightTheme } from "../drawing/picture";
import { SavePicture } from "../drawing/save_picture";
import { useDark } from "../state/theme";
import { Tooltip } from "../widgets/tooltip";
import { drawTree, labelOfBox, paintTree, readTreeColors } from "./paint";
import type { Actions, Scene, TreeChartProps } from "./scene";
import { bindSteps, describe, nodeBeside, onTreeKey, stepIn, stepOut } from "./tree_keys";

const MAX_ANCESTORS = 4;

interface HoverCardProps {
  scene: Scene;
  box: TreeBox;
  x: number;
  y: number;
  width: number;
  actions: Actions;
}

/** Tooltip of a node: name, path, weight, shares, and the effect of a click. */
function HoverCard({ scene, box, x, y, width, actions }: HoverCardProps) {
  const { tree, weights, top } = scene;
  const { node, gathered, own, from } = box;
  const terms = useTerms();
  const below = own || gathered > 0;
  const path = pathNodes(tree, below ? node : tree.parent[from]).map((at) => shortLabel(tree, at));
  // The end of a long path; the breadcrumbs show all of it after zooming.
  const above = path.length > MAX_ANCESTORS ? ["…", ...path.slice(-MAX_ANCESTORS)] : path;
  const leaf = actions.rowOf(box) >= 0;
  const label = labelOf(tree, node);
  // The full path of a frame's file.
  const full = gathered === 0 && !own && shortFrame(label) !== label ? label : "";
  return (
    <Tooltip x={x} y={y + 18} width={width}>
      <b>{gathered > 0 ? `${formatCount(gathered)} more, too small to draw` : labelOfBox(scene, box)}</b>
      {full !== "" && <code>{full}</code>}
      {above.length > 0 && <span class="muted">{above.join(" › ")}</span>}
      {gathered === 0 && (
        <Weight
          scene={scene}
          weight={(own ? weights.self : weights.total)[node]}
          of={below ? node : tree.parent[from]}
        />
      )}
      {!below && <About scene={scene} node={node} />}
      {(node !== top || below) && (
        <span class="muted">
          Click{" "}
          {box.folded > 0
            ? "shows each of them"
            : (actions.clickText ?? (leaf ? `selects this ${terms.item}` : "zooms in"))}{" "}
          · Shift + click shows only {leaf ? "it" : "these"} everywhere
        </span>
      )}
    </Tooltip>
  );
}

/** A weight, with its share of the total and of its parent. */
function Weight({ scene, weight, of }: { scene: Scene; weight: number; of: number }) {
  const { tree, weights, unit } = scene;
  const all = weights.total[0];
  return (
    <span>
      <b>{unit.format(weight)}</b>
      {`, ${formatShare(weight, all)} of ${unit.format(all)}`}
      {of > 0 && `, ${formatShare(weight, weights.total[of])} of ${shortLabel(tree, of)}`}
    </span>
  );
}

function About({ scene: { weights, unit }, node }: { scene: Scene; node: number }) {
  const terms = useTerms();
  const { total, self, count, role } = weights;
  const said = [
    count[node] > 0 && formatCounted(count[node], terms.item, terms.items),
    role[node] !== 0 && `${count[node] === 1 ? "" : "mostly "}${ROLES[role[node]]}`,
    self[node] > 0 && self[node] < total[node] && `${unit.format(self[node])} itself`,
  ];
  return <span>{said.filter(Boolean).join(", ")}</span>;
}

interface Props extends TreeChartProps {
  /** Place the boxes in a picture of this width. */
  layout: (width: number) => TreeBox[];
  height: number;
  nested: boolean;
  /** Children are above their parents. */
  upward?: boolean;
  /** Show the frames that a folded box stands for. */
  onUnfold?: () => void;
  label: string;
  testid: string;
}

/** Tree as boxes on a canvas, with keyboard navigation and a description of each node for screen readers. */
export function TreeCanvas(props: Props) {
  const { scene, actions, layout, height, nested, roles, testid, upward = false } = props;
  const dark = useDark();
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
  // The focused node may be missing in another picture, and another one may be under the pointer.
  useLayoutEffect(
    () =>
      setPointer((at) => {
        const box = at === null ? null : boxAt(boxes, at.x, at.y);
        return at === null || box === null ? null : { ...at, box };
      }),
    [boxes],
  );
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
        aria-label={
          `${props.label}. Arrows move, Enter zooms, Escape zooms out, ` +
          "o filters all charts by the node, c shows its callers and callees."
        }
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
        <HoverCard {...{ scene, width, actions }} box={pointer.box} x={pointer.x} y={pointer.y} />
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
function Outline({ boxes, node, scene, kind }: OutlineProps) {
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

function Frame({ box, kind }: { box: TreeBox; kind: string }) {
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
