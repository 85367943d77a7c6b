import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useTerms } from "../data/terms";
import type { StackFrame } from "../../payload/generated/answers";

/** Frames shown before the list is expanded. */
const MAX_FRAMES = 12;

/** Call stack of a buffer or allocation, innermost frame first. */
export function CallStack({
  frames,
  title = "Stack",
}: {
  frames: StackFrame[];
  title?: string;
}): JSX.Element {
  const terms = useTerms();
  const [all, setAll] = useState(false);
  const shown = all ? frames : frames.slice(0, MAX_FRAMES);
  return (
    <section>
      <h3>{title}</h3>
      {frames.length === 0 && (
        <p class="muted">
          The profile has no call stack for this {terms.item}.
          {terms.item === "buffer" && " Parameters and compiler-generated buffers have none."}
        </p>
      )}
      <ol class="stack">
        {shown.map((frame, i) => (
          <li key={i}>
            <b>{frame.function === "" ? "(unnamed)" : frame.function}</b>
            {frame.file !== "" && (
              <code title={`${frame.file}:${frame.line}`}>
                {shortPath(frame.file)}:{frame.line}
              </code>
            )}
          </li>
        ))}
      </ol>
      {shown.length < frames.length && (
        <button class="link" onClick={() => setAll(true)}>
          {frames.length - shown.length} more frames
        </button>
      )}
    </section>
  );
}

/** Return the last parts of a path; the tooltip has all of it. */
function shortPath(path: string): string {
  const parts = path.split("/");
  return parts.length > 3 ? `…/${parts.slice(-3).join("/")}` : path;
}
