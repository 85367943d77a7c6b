import type { Figure, Summary } from "../recording/summary";

/** One moment of one device, as its profile knows it. */
export interface DeviceProfile {
  recording: Summary;
  headline: string;
  figures: Figure[];
  taken: { time_ns: number | null; step: number | null };
  /** All devices of the file; executables that no device is told of are one of them. */
  devices: {
    id: string;
    memory: string;
    bytes: number;
    kinds: { kind: string; bytes: number; allocations: number }[];
  }[];
}

/** A series of profiles, in their order. */
export interface Growth {
  /** Why there are no verdicts; null where there are. */
  message: string | null;
  points: {
    id: string;
    title: string;
    host: string;
    step: number | null;
    time_ns: number | null;
    bytes: number;
  }[];
  /** Those that leak first. `curve`: bytes in each profile. */
  sites: {
    site: string;
    verdict: string | null;
    sentence: string | null;
    bytes_per_profile: number;
    confidence: number;
    allocations: number;
    curve: number[];
  }[];
  /** Of all other sites together. */
  rest: number[];
}
