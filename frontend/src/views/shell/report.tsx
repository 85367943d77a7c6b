import { formatCount, formatCounted } from "../../base/units";
import type { Report } from "../../payload/api";
import { TAB_OF_AXIS } from "../state/tabs";
import { type Tab, TABS } from "../state/view_state";
import { Message } from "../widgets/message";

/** Tabs that only some logdirs have. */
export type OptionalTabs = Readonly<Record<"fit" | "fleet", boolean>>;

/** Return the tabs that have content: a report has no comparisons, and one recording needs no overview. */
export function tabsOf(report: Report | null, has: OptionalTabs): readonly Tab[] {
  if (report === null) return TABS.filter((tab) => (tab !== "fit" && tab !== "fleet") || has[tab]);
  const held = new Set(report.axes.map((axis) => TAB_OF_AXIS[axis]));
  return TABS.filter(
    (tab) => held.has(tab) || (tab === "overview" && report.recordings > 1) || (tab === "fit" && has.fit),
  );
}

function extent({ recordings, of }: Report): string {
  const all = formatCounted(of, "recording");
  return recordings === of ? all : `${formatCount(recordings)} of ${all}`;
}

/** Badge of an offline report, with the share of recordings in it. */
export function ReportBadge({ report }: { report: Report }) {
  return (
    <span
      class="report-sign"
      data-testid="report-sign"
      title={
        `Offline report of ${extent(report)}. ` +
        "Comparing and pasting errors need the page that tb-memplugin serves."
      }
    >
      Report
      {report.recordings < report.of && `, ${formatCount(report.recordings)} of ${formatCount(report.of)}`}
    </span>
  );
}

/** Message in place of a recording that the report does not contain. */
export function NotInReport({ report }: { report: Report }) {
  const others = report.recordings < report.of ? "Other recordings, comparisons" : "Comparisons";
  return (
    <Message title="Not in this report">
      This report contains {extent(report)}. Choose another run, tab or recording above. {others} and the
      devices of many hosts are available on the page that tb-memplugin serves.
    </Message>
  );
}
