import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { formatBytes, formatShare } from "../../base/units";
import type { PasteResult, Summary } from "../../payload/generated/answers";
import type { Api } from "../../payload/api";
import { ErrorMessage } from "../widgets/message";
import { openRecording } from "../state/open_recording";
import type { ViewState } from "../state/view_state";
import { hasFile, readGiven } from "./dropped_file";
import { sendFile } from "./send_file";

interface Props {
  api: Api;
  store: Store<ViewState>;
  /** Pasted or dropped text, or a dropped profile; empty if the box was opened for pasting. */
  given: string | File;
  onClose: () => void;
  /** Called after a text was added as a run, so that the list of runs is fetched again. */
  onPasted: () => void;
}

type Answer = PasteResult | Error | "pending" | null;

/** Dialog that explains the text of an out-of-memory error, and opens it or a dropped profile as a run. */
export function PasteBox({ api, store, given, onClose, onPasted }: Props): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(typeof given === "string" ? given : "");
  const [answer, setAnswer] = useState<Answer>(null);
  const [sent, setSent] = useState<{ file: File; bytes: number } | null>(null);
  const sending = useRef(new AbortController());
  useEffect(() => () => sending.current.abort(), []);
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
  const send = (file: File): void => {
    sending.current.abort();
    const { signal } = (sending.current = new AbortController());
    setAnswer("pending");
    setSent({ file, bytes: 0 });
    sendFile(api, file, signal, (bytes) => setSent({ file, bytes })).then(
      ({ recordings, run, message }) => {
        setSent(null);
        setAnswer({ recordings, run, message, explanation: [] });
        if (recordings.length === 0) return;
        onPasted();
        open(recordings);
      },
      (error: unknown) => {
        if (signal.aborted) return;
        setSent(null);
        setAnswer(error instanceof Error ? error : new Error(String(error)));
      },
    );
  };
  const take = (found: string | File): void => (typeof found === "string" ? read(found) : send(found));
  // What was dropped or pasted needs no further click.
  useEffect(() => take(given), [given]);
  const open = (recordings: readonly Summary[]): void => {
    openRecording(store, recordings[0]);
    onClose();
  };
  const drop = (event: DragEvent): void => {
    if (!hasFile(event)) return;
    event.preventDefault();
    event.stopPropagation();
    void readGiven(event.dataTransfer).then(take);
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
          Paste the complete error from the log (XLA, TPU, BFC allocator, PyTorch or CUDA), or drop a file: an
          error, a profile, a compiled program or a snapshot. It stays in memory on the server of this page.
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
        {sent !== null && (
          <p role="status" data-testid="sending">
            {`Reading ${sent.file.name}: ${formatBytes(sent.bytes)} of ${formatBytes(sent.file.size)}, ${formatShare(sent.bytes, sent.file.size)}`}
          </p>
        )}
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
  onOpen: (recordings: readonly Summary[]) => void;
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
        <button class="primary" data-testid="paste-open" onClick={() => onOpen(recordings)}>
          Show memory contents
        </button>
      )}
    </section>
  );
}
