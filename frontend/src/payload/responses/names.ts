import { formatBytes } from "../../base/units";
import type { AdviceLine, AdviceList, CallNodes, OverviewRow, Summary } from "../generated/answers";

/** Advice by recording id; absent if it is unknown or still loading. */
export type AdviceById = ReadonlyMap<string, AdviceList>;

/** Format what a change saves: `−217 MiB (up to −834 MiB)`; `up to −834 MiB` where nothing is safe to count on. */
export function savingText({
  saving_bytes: safe,
  saving_at_most_bytes: most,
}: Pick<AdviceLine, "saving_bytes" | "saving_at_most_bytes">): string {
  const [low, high] = [formatBytes(safe), formatBytes(most)];
  if (low === high) return `−${low}`;
  return safe === 0 ? `up to −${high}` : `−${low} (up to −${high})`;
}

/** Return the best change of a recording in words: the set with which it fits, else what saves most; null: none. */
export function bestChange(list: AdviceList): { title: string; saving: string; about: string } | null {
  const { advice, fits_with: needed, limit_bytes: limit } = list;
  if (needed !== null && limit !== null) {
    const pieces = needed.pieces.map((number) => advice[number]);
    const titles = pieces.map(({ title }) => title).join(" + ");
    return {
      title: `${needed.fits ? "fits with" : "does not fit even with"}: ${titles}`,
      saving: `${formatBytes(needed.after_bytes, 4)} of ${formatBytes(limit, 4)}`,
      about: pieces.map(({ sentence }) => sentence).join(" "),
    };
  }
  if (advice.length === 0) return null;
  const [best] = advice;
  const shown = best.evidence === "simulated" ? "" : ` ${best.evidence}`;
  return { title: best.title, saving: savingText(best) + shown, about: best.sentence };
}

/** Return the name of a recording in a list: a program's or file's title, or the memory's name for memory over time. */
export function recordingName({ axis, title, memory }: Summary): string {
  return axis === "TIME" ? memory : title;
}

/** A Python frame such as `a.<locals>.name (folder/file.py:12)`; the end distinguishes it from others. */
const FRAME = /^(?:.*[.>])?([^.>\s]+) \((?:.*\/)?([^/]+:\d+)\)$/;

/** Format the largest part: `layer_* ×48`, or the short name of a frame: `step (train.py:12)`. */
export function partText({ part }: OverviewRow): string {
  if (part === null) return "";
  const frame = FRAME.exec(part.name);
  if (frame !== null) return `${frame[1]} (${frame[2]})`;
  return part.name.includes("*") && part.repeats > 1 ? `${part.name} ×${part.repeats}` : part.name;
}

/** Return a node's name in pprof's format: `func2`, `func2 train.py:12`. */
export function nodeName(nodes: CallNodes, node: number): string {
  const { function: name, file, line } = nodes;
  const place = line[node] > 0 ? `${file[node]}:${line[node]}` : file[node];
  return [name[node], place].filter((part) => part !== "").join(" ") || "unnamed";
}
