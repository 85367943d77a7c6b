import type { ComponentChildren, JSX } from "preact";
import type { FleetMemory } from "../../payload/generated/answers";
import type { FleetProps } from "./section";

/** The answer in words, with the lines of `tb-memplugin fleet`. */
export function FleetHeadline({ fleet, memory }: FleetProps): JSX.Element {
  const { capture, heading, joined, series_rule, texts } = fleet.meta;
  const series = capture?.series ?? [];
  const found = capture?.memories.find((each) => each.memory === memory);
  return (
    <header class="fleet-headline">
      <p class="headline" data-testid="headline">
        {heading}
      </p>
      <dl data-testid="fleet-lines">
        {joined !== "" && <Line label="joined">{joined}</Line>}
        {series.length > 0 && <Line label="series">{series_rule}</Line>}
        {series.map(({ text }) => (
          <Line key={text} label="">
            {text}
          </Line>
        ))}
        {found !== undefined && <MemoryLines found={found} {...texts[memory]} />}
        {capture?.leaks.map(({ text }) => (
          <Line key={text} label="growth">
            {text}
          </Line>
        ))}
      </dl>
    </header>
  );
}

function MemoryLines({
  found,
  worst,
  median,
}: {
  found: FleetMemory;
  worst: readonly string[];
  median: string;
}): JSX.Element {
  return (
    <>
      <Line label="worst">
        {worst.map((part, i) => (
          <span key={part}>
            {i > 0 && " · "}
            {i === 0 ? <b>{part}</b> : part}
          </span>
        ))}
      </Line>
      {found.worst.causes.map(({ text }) => (
        <Line key={text} label="because">
          {text}
        </Line>
      ))}
      {median !== "" && <Line label="median">{median}</Line>}
      {found.apart.map(({ text }) => (
        <Line key={text} label="apart">
          {text}
        </Line>
      ))}
    </>
  );
}

function Line({ label, children }: { label: string; children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}
