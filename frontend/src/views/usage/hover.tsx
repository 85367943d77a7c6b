import type { JSX } from "preact";
import { formatBytes, formatCount, formatShare } from "../../base/units";
import { type Axis, stepAt } from "../../layout/axis/axis";
import { formatTime } from "../../layout/axis/ticks";
import type { UsageSeries } from "../../layout/usage/usage_series";
import type { FirstView } from "../../payload/recording/recording";
import type { Program } from "../../payload/recording/program";
import { useTerms } from "../data/terms";
import { curveLabels } from "./curve_style";

interface Props {
  view: FirstView;
  series: UsageSeries;
  position: number;
  axis: Axis;
  program: Program | null;
}

/** Tooltip of the position under the pointer. */
export function UsageHover({ view, series, position, axis, program }: Props): JSX.Element {
  const terms = useTerms();
  const step = stepAt(series.x, axis.at(position));
  const known = program !== null && position < program.length;
  return (
    <>
      <b>{(known && program.name.at(position)) || `${terms.position} ${formatCount(position)}`}</b>
      {known && program.op_name.at(position) !== "" && <span>{program.op_name.at(position)}</span>}
      <span class="muted">
        {terms.position} {formatCount(position)}
        {known && program.computation.at(position) !== "" && ` in ${program.computation.at(position)}`}
        {known && program.time_ns !== null && `, ${formatTime(program.time_ns[position])}`}
      </span>
      {series.curves.map(({ key, max, min }) => {
        const text = (value: number): string =>
          key === "fragmentation" ? formatShare(value, 1) : formatBytes(value);
        return (
          <span key={key}>
            {curveLabels(key, terms, view)[0]} {Number.isNaN(max[step]) ? "unknown" : text(max[step])}
            {min[step] < max[step] && `, at least ${text(min[step])} nearby`}
          </span>
        );
      })}
    </>
  );
}
