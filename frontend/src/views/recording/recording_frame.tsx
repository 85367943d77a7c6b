import type { JSX } from "preact";

interface Props {
  /** Only the charts and the panel, over the whole window. */
  full: boolean;
  top: JSX.Element;
  charts: JSX.Element;
  below: JSX.Element;
  panel: JSX.Element;
}

/** A page in which verdict, figures and charts fill the window, with tabs below and a panel at the right. */
export function RecordingFrame({ full, top, charts, below, panel }: Props) {
  return (
    <div class={full ? "full with-panel" : "page with-panel"}>
      <div class="content">
        <div class="first-screen">
          {!full && top}
          {charts}
        </div>
        {!full && below}
      </div>
      {panel}
    </div>
  );
}
