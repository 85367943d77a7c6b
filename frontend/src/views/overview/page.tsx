import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import type { Api } from "../../payload/api";
import type { Listing } from "../../payload/generated/answers";
import { formatBytes } from "../../base/units";
import { foldPlaces } from "../../layout/overview/equal_hosts";
import { useFetched } from "../data/use_fetched";
import { useLastFetched } from "../data/use_last_fetched";
import { ErrorMessage, Message, Notes } from "../widgets/message";
import { AssumedCapacity } from "../figures/assumed_capacity";
import { Headline } from "../figures/headline";
import type { OnPageState } from "../data/use_recording";
import type { ViewState } from "../state/view_state";
import { RecordingsTable } from "./recordings_table";
import { CoResidency } from "./co_residency";
import { useAdvice } from "./use_advice";

interface Props {
  api: Api;
  run: string;
  listing: Listing;
  store: Store<ViewState>;
  dark: boolean;
  onState: OnPageState;
}

/** Every program and memory of a run, least headroom first, and the programs that shared a memory. */
export function OverviewPage({ api, run, listing, store, dark, onState }: Props): JSX.Element {
  // Roles and parts read every buffer, so the rows are shown without them first. A report has all at once.
  const figures = useFetched(api.report === null ? run : null, (name, signal) =>
    api.overviewFigures({ run: name }, signal),
  );
  const asked = api.report !== null || figures.value !== null || figures.error !== null;
  // Of a running job, peaks grow and snapshots are added.
  const version = useMemo(
    () =>
      `${run} ${listing.recordings.map(({ id, peak_bytes }) => `${id} ${formatBytes(peak_bytes)}`).join(" ")}`,
    [run, listing],
  );
  const all = useLastFetched(asked ? version : null, (_, signal) => api.overview({ run }, signal));
  const error = all.value === null ? all.error : null;
  const pending = all.value === null;
  const value = all.value ?? figures.value;
  const advice = useAdvice(api, all.value?.rows ?? null);
  useEffect(() => onState(error !== null ? "error" : pending ? "loading" : "ready", null), [pending, error]);
  if (error !== null) return <ErrorMessage error={error} />;
  if (value === null) return <div class="placeholder" aria-busy="true" />;
  return (
    <div class="page">
      <div class="content">
        <Headline
          headline={value.headline}
          caveats={value.caveats}
          problems={[...listing.problems, ...value.problems]}
        />
        <AssumedCapacity recordings={value.rows} store={store} />
        <Notes notes={listing.notes} />
        {value.rows.length === 0 ? (
          <Message title="No recordings in this run">
            The overview lists programs and allocators of a profile with at least one step
            (jax.profiler.trace), device memory profiles (jax.profiler.save_device_memory_profile), PyTorch
            snapshots, and out-of-memory errors.
          </Message>
        ) : (
          <RecordingsTable rows={value.rows} {...{ pending, advice, run, store, dark }} />
        )}
        {foldPlaces(value.together).map(({ place, hosts }) => (
          <CoResidency key={`${place.host} ${place.memory}`} {...{ place, hosts, store }} rows={value.rows} />
        ))}
      </div>
    </div>
  );
}
