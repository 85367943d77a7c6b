import { useMemo } from "preact/hooks";
import { formatBytes, formatCount } from "../../base/units";
import { formatTime } from "../../layout/axis";
import { comparableRecordings, swapName } from "../../layout/compare/changes";
import type { Api } from "../../payload/api";
import { listedHost, placeOfId } from "../../payload/choose_recording";
import type { ComparedSide, Comparison, Listing, Runs, Summary } from "../../payload/generated/answers";
import type { RecordingsQuery } from "../../payload/generated/client";
import { useDraft } from "../browser/hooks";
import { useTerms } from "../data/terms";
import { type Fetched, useFetched } from "../data/use_fetched";
import { NEW_COMPARISON, store, useViewState } from "../state/view_state";
import { Combobox, runOptions } from "../widgets/combobox";

interface Props {
  api: Api;
  runs: Runs;
  pair: { a: string; b: string } | null;
  comparison: Comparison | null;
}

/** Pickers of the two recordings and their positions. */
export function Sides({ api, runs, pair, comparison }: Props) {
  const swap = (): void => {
    const { at_a, at_b, selected_change: change } = store.get();
    if (pair !== null)
      store.set({ a: pair.b, b: pair.a, at_a: at_b, at_b: at_a, selected_change: swapName(change) });
  };
  const shared = { api, runs };
  return (
    <section class="sides" aria-label="Compared recordings">
      <SidePicker
        {...shared}
        name="a"
        id={pair?.a ?? ""}
        other={pair?.b ?? ""}
        side={comparison?.a ?? null}
      />
      <button data-testid="swap" title="Swap A and B" aria-label="Swap A and B" onClick={swap}>
        ⇄
      </button>
      <SidePicker
        {...shared}
        name="b"
        id={pair?.b ?? ""}
        other={pair?.a ?? ""}
        side={comparison?.b ?? null}
      />
    </section>
  );
}

interface SidePickerProps {
  api: Api;
  runs: Runs;
  name: "a" | "b";
  id: string;
  other: string;
  side: ComparedSide | null;
}

function SidePicker({ api, runs, name, id, other, side }: SidePickerProps) {
  const { run } = placeOfId(runs, id);
  const listing = useListing(api, runs, id);
  const others = useListing(api, runs, other);
  const known = listing.value?.recordings ?? [];
  const counterpart = others.value?.recordings.find((recording) => recording.id === other);
  // B must be of the same kind as A.
  const offered = comparableRecordings(known, name === "b" ? counterpart : undefined);
  const pick = (picked: string): void =>
    store.set({
      selected_change: "",
      ...(name === "a" ? { a: picked, b: other, at_a: null } : { b: picked, a: other, at_b: null }),
    });
  const offeredRuns = useMemo(() => runOptions(runs.runs), [runs]);
  const pickRun = (picked: string): void => {
    api.recordings({ run: picked }, new AbortController().signal).then(
      ({ recordings }) => {
        const best = comparableRecordings(recordings, counterpart).at(0);
        if (best !== undefined) pick(best.id);
        else if (recordings.length > 0)
          store.set({ ...NEW_COMPARISON, a: recordings[0].id, b: recordings[0].id, selected_change: "" });
      },
      () => undefined,
    );
  };
  return (
    <div class="side" data-testid={`side-${name}`}>
      <b class="side-name">{name.toUpperCase()}</b>
      <Combobox label="Run" testid={`run-${name}`} options={offeredRuns} value={run} onPick={pickRun} />
      <Combobox
        label="Recording"
        testid={`recording-${name}`}
        options={offered.map((recording) => ({
          value: recording.id,
          label: titleOf(recording),
          detail: formatBytes(recording.peak_bytes),
        }))}
        value={titleOf(known.find((recording) => recording.id === id))}
        onPick={pick}
      />
      {side !== null && side.length > 1 && side.recording.id === id && (
        <PositionInput name={name} side={side} />
      )}
      <span class="muted" data-testid={`bytes-${name}`}>
        {side !== null && formatBytes(side.bytes)}
      </span>
    </div>
  );
}

function PositionInput({ name, side }: { name: "a" | "b"; side: ComparedSide }) {
  const terms = useTerms();
  const key = name === "a" ? "at_a" : "at_b";
  const at = useViewState((state) => state[key]);
  const set = (value: number | null): void => store.set(name === "a" ? { at_a: value } : { at_b: value });
  const field = useDraft(String(side.position), (typed) => {
    const value = typed === "" ? NaN : Number(typed);
    set(Number.isInteger(value) ? Math.min(Math.max(value, 0), side.length - 1) : null);
  });
  return (
    <span class="moment">
      <label>
        at {terms.position}{" "}
        <input type="number" min={0} max={side.length - 1} data-testid={`moment-${name}`} {...field} />
      </label>
      <span class="muted">
        of {formatCount(side.length)}
        {side.time_ns !== null && `, ${formatTime(side.time_ns)}`}
      </span>
      <button class="link" disabled={at === null} onClick={() => set(null)}>
        {at === null ? "the peak" : "to the peak"}
      </button>
    </span>
  );
}

/** Return the recordings of the run of a recording, or of its host alone where the run has many. */
function useListing(api: Api, runs: Runs, id: string): Fetched<Listing> {
  const { run, host: named } = placeOfId(runs, id);
  const host = listedHost(runs, run, named);
  return useFetched(run === "" ? null : JSON.stringify({ run, host }), (key, signal) =>
    api.recordings(JSON.parse(key) as RecordingsQuery, signal),
  );
}

function titleOf(recording: Summary | undefined): string {
  if (recording === undefined) return "";
  const { kind, title, memory, host } = recording;
  return [title, memory, kind === "device_profile" ? "" : host].filter((part) => part !== "").join(", ");
}
