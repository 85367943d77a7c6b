import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { formatBytes } from "../../base/units";
import type { Api } from "../../payload/api";
import type { Summary } from "../../payload/generated/answers";
import { copyText } from "../browser/copy_text";
import { useFetched } from "../data/use_fetched";
import { openRecording } from "../state/open_recording";
import type { ViewState } from "../state/view_state";

interface Props {
  api: Api;
  id: string;
  store: Store<ViewState>;
}

/** The program that an error without buffers names: links where the logdir has it, else how to get it. */
export function FailedProgram({ api, id, store }: Props): JSX.Element | null {
  const { value } = useFetched(id, (key, signal) => api.failedProgram({ id: key }, signal));
  if (value === null) return null;
  if (value.programs.length > 0) return <Programs programs={value.programs} store={store} />;
  return value.recipe === null ? null : <Recipe recipe={value.recipe} />;
}

function Programs({
  programs,
  store,
}: {
  programs: readonly Summary[];
  store: Store<ViewState>;
}): JSX.Element {
  return (
    <ul class="oom-hints" aria-label="Dumps of the program" data-testid="failed-program">
      {programs.map((program) => (
        <li key={program.id}>
          A dump contains the buffers:{" "}
          <button
            class="link"
            title="Open the compiled program"
            onClick={() => openRecording(store, program)}
          >
            {program.title}
          </button>
          , {formatBytes(program.reserved_bytes ?? program.peak_bytes)} of {program.memory}, in {program.run}
        </li>
      ))}
    </ul>
  );
}

/** How to get the buffers of a program that the compiler refused. */
function Recipe({ recipe }: { recipe: string }): JSX.Element {
  const [copied, setCopied] = useState<string | null>(null);
  const copy = (): void =>
    void copyText(recipe).then(
      () => setCopied("Copied"),
      (error: unknown) => setCopied(error instanceof Error ? error.message : String(error)),
    );
  return (
    <section class="oom-recipe" aria-label="How to see the buffers" data-testid="oom-recipe">
      <h2>See every buffer of this program</h2>
      <p>
        This text lists no buffers, and no program of this name is in the logdir. XLA dumps the complete
        program even when compilation fails. Run the script again with
      </p>
      <p>
        <code>{recipe}</code>{" "}
        <button data-testid="copy-recipe" onClick={copy}>
          Copy
        </button>{" "}
        <span class="muted" role="status">
          {copied}
        </span>
      </p>
      <p class="muted">
        FOLDER may be any folder below the logdir. Reload the page then: the program is linked here.
      </p>
    </section>
  );
}
