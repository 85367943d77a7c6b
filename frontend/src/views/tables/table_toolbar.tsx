import type { JSX } from "preact";
import { saveText, useCopying } from "../browser/export";

export interface ToolbarProps {
  search: string;
  onSearch: (text: string) => void;
  size: string;
  /** Null where rows have no size. */
  onSize: ((text: string) => void) | null;
  /** Controls that choose the rows. */
  options?: JSX.Element | undefined;
  /** Errors in the filter as typed. */
  errors: string[];
  summary: string;
  csv: () => string;
  fileName: string;
}

export function TableToolbar(props: ToolbarProps) {
  const [copied, copy] = useCopying();
  return (
    <div class="toolbar">
      <input
        type="search"
        data-testid="table-search"
        aria-label="Filter by text or regular expression"
        placeholder="Filter: text or regex"
        spellcheck={false}
        value={props.search}
        onInput={(event) => props.onSearch(event.currentTarget.value)}
      />
      {props.onSize !== null && (
        <input
          class="size-filter"
          data-testid="table-size"
          aria-label="Filter by size"
          placeholder="Size: >1MiB"
          spellcheck={false}
          value={props.size}
          onInput={(event) => props.onSize?.(event.currentTarget.value)}
        />
      )}
      {props.options}
      <span class="muted toolbar-summary" role="status">
        {props.summary}
      </span>
      <span class="toolbar-csv">
        <button onClick={() => copy(props.csv())}>{copied === "" ? "Copy CSV" : copied}</button>
        <button onClick={() => saveText(props.csv(), props.fileName)}>Save CSV</button>
      </span>
      {props.errors.map((error) => (
        <p key={error} class="filter-error" role="alert">
          {error}
        </p>
      ))}
    </div>
  );
}
