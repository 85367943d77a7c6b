import type { JSX } from "preact";

/** Letters at the end that are always shown: a line number, the number of an instruction, the end of a path. */
const TAIL = 9;

/** Text that gives way in the middle where there is no room: names of one table or chart differ at their ends. */
export function Middle({ text }: { text: string }): JSX.Element {
  // Not within a pair of UTF-16 units.
  const letters = Array.from(text.slice(-2 * TAIL));
  const tail = text.length > 2 * TAIL ? letters.slice(-TAIL).join("") : "";
  return (
    <bdi class="middle">
      <span>{text.slice(0, text.length - tail.length)}</span>
      {tail !== "" && <span>{tail}</span>}
    </bdi>
  );
}
