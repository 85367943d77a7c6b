import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import type { PasteResult } from "../../payload/generated/answers";
import type { Api } from "../../payload/api";
import { ErrorMessage } from "../widgets/message";
import { NEW_RECORDING } from "../state/view_state";
import type { ViewState } from "../state/view_state";
import { hasFile, readText } from "./dropped_file";

interface Props {
  api: Api;
  store: Store<ViewState>;
  /** Text of a dropped file; empty if the box was opened for pasting. */
  dropped: string;
  onClose: () => void;
  /** Called after a text was added as a run, so that the list of runs is fetched again. */
  onPasted: () => void;
}

type Answer = PasteResult | Error | "pending" | null;

/** Dialog that explains the text of an out-of-memory error and opens it as a snapshot. */
export function PasteBox({ api, store, dropped, onClose, onPasted }: Props): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(dropped);
  const [answer, setAnswer] = useState<Answer>(null);
  useEffect(() => dialog.current?.showModal(), []);

  const read = (newText: string): void => {
    setText(newText);
    if (newText.trim() === "") return;
    setAnswer("pending");
    api.paste(newText, new AbortController().signal).then(
      (pasted) => {
        setAnswer(pasted);
        if (pasted.recordings.length > 0) onPasted();
      },
      (error: unknown) => setAnswer(error instanceof Error ? error : new Error(String(error))),
    );
  };
  // A dropped file needs no further click.
  useEffect(() => read(dropped), [dropped]);
  const open = (pasted: PasteResult): void => {
    const [first] = pasted.recordings;
    const { run, host, memory: space } = first;
    store.set({
      ...NEW_RECORDING,
      tab: "snapshots",
      run,
      host,
      module: "",
      space,
      search: "",
      timeline_only: false,
    });
    onClose();
  };
  const drop = (event: DragEvent): void => {
    if (!hasFile(event)) return;
    event.preventDefault();
    event.stopPropagation();
    void readText(event).then(read);
  };
  return (
    <dialog
      ref={dialog}
      class="help paste"
      aria-label="Paste an error"
      data-testid="paste-box"
      onClose={onClose}
      onDragOver={(event) => {
        if (hasFile(event)) event.preventDefault();
      }}
      onDrop={drop}
    >
      <div class="help-body">
        <header>
          <h2>Paste an out-of-memory error</h2>
          <button class="quiet" aria-label="Close" onClick={onClose}>
            ×
          </button>
        </header>
        <p class="muted">
          Paste the complete error from the log (XLA, TPU, BFC allocator, PyTorch or CUDA), or drop a file.
          The text stays on the server of this page.
        </p>
        <textarea
          data-testid="paste-text"
          aria-label="Text of the error"
          autofocus
          placeholder="RESOURCE_EXHAUSTED: Out of memory while trying to allocate …"
          spellcheck={false}
          rows={12}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAnswer(null);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) read(text);
          }}
        />
        <div class="paste-acts">
          <button
            class="primary"
            data-testid="paste-read"
            disabled={text.trim() === "" || answer === "pending"}
            title="Ctrl + Enter"
            onClick={() => read(text)}
          >
            {answer === "pending" ? "Reading…" : "Explain"}
          </button>
        </div>
        <Explanation answer={answer} onOpen={open} />
      </div>
    </dialog>
  );
}

/** Explanation of the error, or the reason why the text could not be read. */
function Explanation({
  answer,
  onOpen,
}: {
  answer: Answer;
  onOpen: (pasted: PasteResult) => void;
}): JSX.Element | null {
  if (answer === null || answer === "pending") return null;
  if (answer instanceof Error) return <ErrorMessage error={answer} />;
  const { recordings, explanation, message } = answer;
  return (
    <section class="paste-answer" role="status" data-testid="paste-answer">
      {message !== null && <p>{message}</p>}
      {explanation.map((sentence, i) => (
        <p key={i}>{sentence}</p>
      ))}
      {recordings.length > 0 && (
        <button class="primary" data-testid="paste-open" onClick={() => onOpen(answer)}>
          Show memory contents
        </button>
      )}
    </section>
  );
}
