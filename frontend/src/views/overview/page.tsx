import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Store } from "../../base/store";
import type { Api, Listing } from "../../payload/api";
import type { PageState } from "../recording/recording_page";
import type { ViewState } from "../state";

interface Props {
  api: Api;
  run: string;
  listing: Listing;
  store: Store<ViewState>;
  dark: boolean;
  onState: (state: PageState) => void;
}

/** Every program and memory of a run, worst first. */
export function OverviewPage({ run, listing, onState }: Props): JSX.Element {
  useEffect(() => onState("ready"), [run]);
  return (
    <main class="page">
      <p class="headline" data-testid="headline">
        {listing.recordings.length} recordings in {run}
      </p>
    </main>
  );
}
