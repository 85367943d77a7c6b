import { formatCount } from "../../base/units";
import type { Summary } from "../../payload/generated/answers";
import { termsOf } from "../data/terms";
import type { PictureNames } from "../drawing/titled_picture";
import type { ViewState } from "../state/view_state";

/** Return the title of saved pictures: run, host, program, memory, and what the charts are restricted to. */
export function pictureNames(state: ViewState, run: string, chosen: Summary | null): PictureNames {
  if (state.tab === "compare") return { run, lines: [run, comparedText(state)].filter(Boolean) };
  if (chosen === null) return { run: state.tab === "fit" ? "" : run, lines: [run].filter(Boolean) };
  const place = [run, chosen.host, chosen.title, chosen.memory].filter(Boolean).join(" · ");
  const shown = [
    positionText(state, chosen),
    state.row_filter !== "" && `only ${state.row_filter}`,
    state.search !== "" && `search: ${state.search}`,
  ];
  return { run, lines: [place, shown.filter(Boolean).join("; ")].filter(Boolean) };
}

function positionText({ position }: ViewState, chosen: Summary): string {
  if (chosen.axis === "INSTANT") return "";
  return position === null ? "at the peak" : `at ${termsOf(chosen).position} ${formatCount(position)}`;
}

function comparedText({ a, b }: ViewState): string {
  return a === "" || b === "" ? "" : `A: ${a}; B: ${b}`;
}
