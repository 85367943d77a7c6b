import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { hasWords } from "../../base/search";
import { formatBytes, formatCount } from "../../base/units";
import { shortNames } from "../../layout/short_names";
import type { Runs, Summary } from "../../payload/generated/answers";
import { useSearch } from "../data/use_search";

export interface Option {
  value: string;
  label: string;
  /** Right-aligned text, such as the peak. */
  detail: string;
}

export interface PickerProps {
  label: string;
  testid: string;
  options: Option[];
  value: string;
  onPick: (value: string) => void;
}

/** The options that are drawn at once: 10,000 would take a second. */
const PAGE = 200;

/**
 * Searchable list of options, an ARIA editable combobox with list autocomplete. Of a long list, only the page with the
 * active option is drawn.
 */
export function Combobox({ label, testid, options: latest, value, onPick }: PickerProps) {
  const id = useId();
  const [typed, setTyped] = useState<string | null>(null);
  // A run that appears while the list is open must not move the others below the pointer.
  const opened = useRef(latest);
  if (typed === null) opened.current = latest;
  const options = opened.current;
  const short = useMemo(() => shortNames(options.map(({ label: name }) => name)), [options]);
  const [active, setActive] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const open = typed !== null;
  const search = useSearch(typed ?? "", options, (of) => of.map((option) => option.label));
  const shown = useMemo(
    () => options.filter(({ label }) => search.matches(label) || hasWords(label, typed ?? "")),
    [options, search, typed],
  );

  const first = Math.floor(active / PAGE) * PAGE;
  const page = shown.slice(first, first + PAGE);

  useEffect(() => {
    list.current?.children[active - first]?.scrollIntoView({ block: "nearest" });
  }, [active, open]);

  const show = (text: string): void => {
    const chosenAt = options.findIndex((option) => option.value === value);
    setTyped(text);
    setActive(text === "" ? Math.max(chosenAt, 0) : 0);
  };
  const pick = (option: Option | undefined): void => {
    setTyped(null);
    // Keys are those of the page again.
    input.current?.blur();
    if (option !== undefined && option.value !== value) onPick(option.value);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!open && (event.key === "ArrowDown" || event.key === "Enter")) show("");
    else if (event.key === "ArrowDown") setActive(Math.min(active + 1, shown.length - 1));
    else if (event.key === "ArrowUp") setActive(Math.max(active - 1, 0));
    else if (event.key === "Enter" && open) pick(shown[active]);
    else if (event.key === "Escape" && open) setTyped(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const chosen = options.find((option) => option.value === value);
  return (
    <div class={`picker combobox ${testid}`}>
      <label for={id}>{label}</label>
      <div
        class="combobox-field"
        onClick={() => {
          input.current?.focus();
          if (!open) show("");
        }}
      >
        <input
          ref={input}
          id={id}
          data-testid={testid}
          role="combobox"
          aria-expanded={open}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={open && shown.length > 0 ? `${id}-${active}` : undefined}
          autocomplete="off"
          spellcheck={false}
          placeholder={open ? "Type to search" : ""}
          value={typed ?? short(chosen?.label ?? value)}
          title={chosen?.label ?? value}
          onFocus={(event) => event.currentTarget.select()}
          onInput={(event) => show(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          onBlur={() => setTyped(null)}
        />
        {!open && chosen !== undefined && chosen.detail !== "" && (
          <span class="combobox-detail">{chosen.detail}</span>
        )}
      </div>
      {open && (
        <ul id={`${id}-list`} role="listbox" aria-label={label} ref={list}>
          {shown.length === 0 && <li class="muted">No {label.toLowerCase()} matches.</li>}
          {page.map((option, i) => (
            <li
              key={option.value}
              id={`${id}-${first + i}`}
              role="option"
              aria-selected={option.value === value}
              aria-setsize={shown.length}
              aria-posinset={first + i + 1}
              class={first + i === active ? "active" : ""}
              // Before blur, which closes the list.
              onMouseDown={(event) => {
                event.preventDefault();
                pick(option);
              }}
              onMouseMove={() => setActive(first + i)}
            >
              <span title={option.label}>{short(option.label)}</span>
              <span class="combobox-detail">{option.detail}</span>
            </li>
          ))}
          {page.length < shown.length && (
            <li class="muted">
              {formatCount(first + 1)} to {formatCount(first + page.length)} of {formatCount(shown.length)}:
              type to search
            </li>
          )}
        </ul>
      )}
    </div>
  );
}

/** Largest peaks of runs by name, as far as they are known. */
export type RunPeaks = ReadonlyMap<string, number>;

/** Return the known peaks with that of a run's recordings, which are sorted by peak. */
export function withPeak(peaks: RunPeaks, recordings: readonly Summary[]): RunPeaks {
  if (recordings.length === 0 || peaks.get(recordings[0].run) === recordings[0].peak_bytes) return peaks;
  return new Map(peaks).set(recordings[0].run, recordings[0].peak_bytes);
}

/** Return the options of a run picker: each run's date, hosts and largest peak, as far as they are known. */
export function runOptions(runs: Runs["runs"], peaks: RunPeaks = new Map(), now = new Date()): Option[] {
  return runs.map(({ name, host_count: hosts, modified_ns, peak_bytes }) => {
    const peak = peaks.get(name) ?? peak_bytes;
    const details = [
      hosts > 1 ? `${formatCount(hosts)} hosts` : "",
      peak === null ? "" : formatBytes(peak),
      modified_ns === null ? "" : dateText(new Date(modified_ns / 1e6), now),
    ];
    return { value: name, label: name, detail: details.filter(Boolean).join(" · ") };
  });
}

const DAY = { month: "short", day: "numeric" } as const;
// Made once: a formatter takes longer to make than a thousand dates to format.
const THIS_YEAR = new Intl.DateTimeFormat("en", {
  ...DAY,
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
const OTHER_YEARS = new Intl.DateTimeFormat("en", { ...DAY, year: "numeric" });

/** Return a time in the browser's time zone: of a day this year with the time of day, of others with the year. */
export function dateText(date: Date, now: Date): string {
  return (date.getFullYear() === now.getFullYear() ? THIS_YEAR : OTHER_YEARS).format(date);
}
