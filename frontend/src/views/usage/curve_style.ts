import { cssColor, roleColors } from "../../base/colors";
import type { CurveKey } from "../../layout/usage/usage_series";
import type { FirstView } from "../../payload/recording/recording";
import { ROLES } from "../../payload/generated/constants";
import type { Terms } from "../data/terms";

/** A curve's line, on the chart and in its legend: told apart by its dashes too. */
export interface CurveStyle {
  /** A color of the page by the name of its variable, or a color of its own. */
  color: string;
  dash: "solid" | "dashed" | "dotted";
  width: number;
}

/** Dashes in pixels, as CSS draws borders of these names. */
export const DASHES = { solid: [], dashed: [7, 4], dotted: [3, 3] } as const;

const roleColor = (role: (typeof ROLES)[number], dark: boolean): string =>
  cssColor(roleColors(dark)[ROLES.indexOf(role)]);

export function curveStyle(key: CurveKey, dark: boolean): CurveStyle {
  switch (key) {
    case "live":
      return { color: "--accent", dash: "solid", width: 1.5 };
    case "requested":
    case "heap":
      return { color: "--muted", dash: "dotted", width: 1 };
    case "stack":
      return { color: roleColor("executable", dark), dash: "dotted", width: 1.5 };
    case "held":
      return { color: "--ink", dash: "dashed", width: 1 };
    case "free":
      return { color: roleColor("temporary", dark), dash: "solid", width: 1.2 };
    case "largest_free":
      return { color: roleColor("temporary", dark), dash: "dashed", width: 1.2 };
    case "fragmentation":
      return { color: roleColor("gradient", dark), dash: "dotted", width: 1.5 };
    case "ceiling":
      return { color: "--ink", dash: "dashed", width: 1 };
  }
}

/** What a curve is called, and what it is. */
export function curveLabels(key: CurveKey, terms: Terms, { recording }: FirstView): [string, string] {
  const events = recording.axis === "TIME";
  switch (key) {
    case "live":
      return [terms.live, events ? "Heap and stack together" : "Bytes of live buffers, padding included"];
    case "requested":
      return [`${terms.live}, ${terms.requested}`, `Without ${terms.excess}`];
    case "heap":
      return ["heap alone", "Bytes of allocations, without the stack"];
    case "stack":
      return ["stack", "Reserved for running programs"];
    case "held":
      return ["reserved", "What the allocator has from the device"];
    case "free":
      return ["free", "What the allocator could still hand out"];
    case "largest_free":
      return ["largest free block", "A larger request fails, however much is free"];
    case "fragmentation":
      return [
        "fragmentation",
        "Share of the free bytes outside the largest free block; the top of the chart is 100%",
      ];
    case "ceiling":
      return events
        ? ["capacity", "All the memory there is"]
        : ["reserved", "What the program asks the device for"];
  }
}
