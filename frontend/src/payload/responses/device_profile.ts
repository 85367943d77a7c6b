import type { Figure, Summary } from "../recording/summary";

/** Memory of one device at one moment. */
export interface DeviceProfile {
  recording: Summary;
  headline: string;
  figures: Figure[];
  taken: { time_ns: number | null; step: number | null };
  /** All devices of the file. Executables without a device are listed as one device. */
  devices: {
    id: string;
    memory: string;
    bytes: number;
    kinds: { kind: string; bytes: number; allocations: number }[];
  }[];
}

/** A series of profiles, in order. */
export interface Growth {
  /** Why there are no verdicts; null if there are. */
  message: string | null;
  points: {
    id: string;
    title: string;
    host: string;
    step: number | null;
    time_ns: number | null;
    bytes: number;
  }[];
  /** Leaking sites first. `curve`: bytes in each profile. */
  sites: {
    site: string;
    verdict: string | null;
    sentence: string | null;
    bytes_per_profile: number;
    confidence: number;
    allocations: number;
    curve: number[];
  }[];
  /** Sum of all other sites, for each profile. */
  rest: number[];
}
