/** What the page looks at: the one place that every chart reads and writes. */
export interface ViewState {
  /** Empty: the newest run, every host, the largest module, its largest memory space. */
  run: string;
  host: string;
  module: string;
  space: string;
  /** Inspected position on the axis; null is the peak. */
  position: number | null;
  /** Row numbers of api/rows. */
  selected: number | null;
  hovered: number | null;
  match: number | null;
  /** Window of the x axis in positions (fractions allowed), shared by all charts along it; null is all. */
  zoom: readonly [number, number] | null;
  /** Window of the timeline's y axis in bytes; null is all. */
  yzoom: readonly [number, number] | null;
  /** Regular expression shared by the timeline and the table. */
  search: string;
  /** "all" draws parameters, outputs and constants on the timeline too. */
  show: "temp" | "all";
  /** The timeline alone, over the whole window. */
  full: boolean;
  theme: "auto" | "light" | "dark";
}

export const initialState: ViewState = {
  run: "",
  host: "",
  module: "",
  space: "",
  position: null,
  selected: null,
  hovered: null,
  match: null,
  zoom: null,
  yzoom: null,
  search: "",
  show: "temp",
  full: false,
  theme: "auto",
};
