/** Letters at the end that are always shown: a line number, the number of an instruction, the end of a path. */
const TAIL = 9;

interface Props {
  text: string;
  /** Letters at the end that are always shown. */
  end?: number;
}

/** Text that gives way in the middle where there is no room: names of one table or chart differ at their ends. */
export function Middle({ text, end = TAIL }: Props) {
  // Not within a pair of UTF-16 units.
  const letters = Array.from(text.slice(-2 * end));
  const tail = text.length > end + TAIL ? letters.slice(-end).join("") : "";
  return (
    <bdi class="middle">
      <span>{text.slice(0, text.length - tail.length)}</span>
      {tail !== "" && <span>{tail}</span>}
    </bdi>
  );
}
