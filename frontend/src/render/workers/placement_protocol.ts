import type { FixedLayout, Lifetimes, Placement } from "../../layout/stacking/stacking";

/**
 * Messages to and from the worker that places rows: it replies with its progress, then with the placement.
 */
export interface PlacementRequest {
  layout: FixedLayout;
  lifetimes: Lifetimes;
}

export type PlacementReply =
  | { kind: "share"; share: number }
  | { kind: "placed"; placing: Placement }
  | { kind: "failed"; message: string };
