import type { JSX } from "preact";
import { formatCount, formatCounted } from "../../base/units";
import type { Report } from "../../payload/api";
import { Message } from "../widgets/message";
import { TAB_OF_AXIS } from "../state/open_recording";
import type { Tab } from "../state/view_state";
import { TABS } from "../state/view_state";

/** The tabs that there is something for: in a report nothing can be compared, and one recording needs no overview. */
export function tabsOf(report: Report | null): readonly Tab[] {
  if (report === null) return TABS;
  const held = new Set(report.axes.map((axis) => TAB_OF_AXIS[axis]));
  return TABS.filter((tab) => held.has(tab) || (tab === "overview" && report.recordings > 1));
}

function extent({ recordings, of }: Report): string {
  const all = formatCounted(of, "recording");
  return recordings === of ? all : `${formatCount(recordings)} of ${all}`;
}

/** That this page is a file, and how much of what there was is in it. */
export function ReportBadge({ report }: { report: Report }): JSX.Element {
  return (
    <span
      class="report-sign"
      data-testid="report-sign"
      title={`A file that holds ${extent(report)}, and asks no server. Comparisons and pasted errors are for the page that tb-memplugin serves.`}
    >
      Report
      {report.recordings < report.of && `, ${formatCount(report.recordings)} of ${formatCount(report.of)}`}
    </span>
  );
}

/** In place of what was asked for and is not in the file. */
export function NotInReport({ report }: { report: Report }): JSX.Element {
  const others =
    report.recordings < report.of ? "What was left out, and comparisons, are" : "Comparisons are";
  return (
    <Message title="This report does not hold that">
      It holds {extent(report)}: choose another run, tab or name above. {others} on the page that tb-memplugin
      serves.
    </Message>
  );
}
