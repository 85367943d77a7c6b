import type { ComponentChildren, JSX } from "preact";
import type { Problem } from "../../payload/generated/answers";
import type { Caveat } from "../../payload/generated/answers";
import { Caveats } from "./caveats";

interface Props {
  headline: string;
  /** The rest of the headline has not loaded: its space is kept free. */
  grows?: boolean;
  caveats: Caveat[];
  problems: Problem[];
  /** Details under the headline: figures or advice. */
  children?: ComponentChildren;
}

/** Top of every page: headline, figures, advice and caveats. */
export function Headline({ headline, grows = false, caveats, problems, children }: Props): JSX.Element {
  return (
    <>
      <p class={grows ? "headline grows" : "headline"} data-testid="headline">
        {headline}
      </p>
      {children}
      <Caveats caveats={caveats} problems={problems} />
    </>
  );
}
