export interface Caveat {
  code: string;
  text: string;
  bytes: number | null;
}

/** One recording as listed by api/recordings. Sizes in bytes; null if unknown. */
export interface Summary {
  id: string;
  kind: string;
  title: string;
  run: string;
  host: string;
  memory: string;
  axis: string;
  allocations: number;
  peak_bytes: number;
  peak_position: number;
  reserved_bytes: number | null;
  reported_peak_bytes: number | null;
  capacity_bytes: number | null;
  caveats: Caveat[];
}

export interface Figure {
  key: string;
  label: string;
  bytes: number | null;
  text: string;
}
