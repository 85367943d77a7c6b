import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Store } from "../../base/store";
import type { Api, Listing, Runs } from "../../payload/api";
import type { PageState } from "../recording/recording_page";
import type { ViewState } from "../state";

interface Props {
  api: Api;
  runs: Runs;
  run: string;
  listing: Listing;
  store: Store<ViewState>;
  dark: boolean;
  onState: (state: PageState) => void;
}

/** What changed from one recording, or moment of one, to another. */
export function ComparePage({ run, onState }: Props): JSX.Element {
  useEffect(() => onState("ready"), [run]);
  return <main class="page" />;
}
