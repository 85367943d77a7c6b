export interface PageColors {
  ink: string;
  muted: string;
  grid: string;
  accent: string;
  warn: string;
  bad: string;
  surface: string;
}

/** Colors of the page, or of an element with another theme, which canvases do not inherit. */
export function pageColors(page = document.documentElement): PageColors {
  const style = getComputedStyle(page);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return {
    ink: read("--ink"),
    muted: read("--muted"),
    grid: read("--line"),
    accent: read("--accent"),
    warn: read("--warn"),
    bad: read("--bad"),
    surface: read("--surface"),
  };
}
