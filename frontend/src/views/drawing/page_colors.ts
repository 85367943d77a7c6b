export interface PageColors {
  ink: string;
  muted: string;
  grid: string;
  accent: string;
  warn: string;
  surface: string;
}

/** Colors of the page, which uPlot's canvas does not inherit. */
export function pageColors(): PageColors {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return {
    ink: read("--ink"),
    muted: read("--muted"),
    grid: read("--line"),
    accent: read("--accent"),
    warn: read("--warn"),
    surface: read("--surface"),
  };
}
