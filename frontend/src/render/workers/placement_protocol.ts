import type { FixedLayout, Lifetimes, Placement } from "../../layout/stacking/stacking";

/** What the page asks of a worker that places rows, and what comes back: from time to time how far it is, then all. */
export interface PlacementRequest {
  layout: FixedLayout;
  lifetimes: Lifetimes;
}

export type PlacementReply =
  | { kind: "share"; share: number }
  | { kind: "placed"; placing: Placement }
  | { kind: "failed"; message: string };
