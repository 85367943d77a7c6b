import type { ComponentChildren, JSX } from "preact";
import type { Problem } from "../../payload/generated/answers";
import type { Caveat } from "../../payload/generated/answers";
import { Caveats } from "./caveats";

interface Props {
  headline: string;
  caveats: Caveat[];
  problems: Problem[];
  /** Details under the headline: figures or advice. */
  children?: ComponentChildren;
}

/** Top of every page: headline, figures, advice and caveats. */
export function Headline({ headline, caveats, problems, children }: Props): JSX.Element {
  return (
    <>
      <p class="headline" data-testid="headline">
        {headline}
      </p>
      {children}
      <Caveats caveats={caveats} problems={problems} />
    </>
  );
}
