import type { ComponentChildren, JSX } from "preact";
import type { Problem } from "../../payload/generated/answers";
import type { Caveat } from "../../payload/generated/answers";
import { Caveats } from "./caveats";

interface Props {
  headline: string;
  caveats: Caveat[];
  problems: Problem[];
  /** What the headline is made of: figures, or what would help. */
  children?: ComponentChildren;
}

/** What every page begins with: the answer in words, what it is made of, and what could not be known. */
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
