import { useEffect, useRef, useState } from "preact/hooks";
import { asError } from "../../base/errors";
import { isEditable } from "../../base/input";
import { formatBytes, formatShare } from "../../base/units";
import type { Api } from "../../payload/api";
import type { OpenedFile, PasteResult, Summary } from "../../payload/generated/answers";
import { openRecording } from "../state/tabs";
import { Dialog } from "../widgets/dialog";
import { ErrorMessage } from "../widgets/message";

/** Error texts are a few MiB at most. */
const MAX_TEXT_BYTES = 32 * 2 ** 20;

/** Names of texts; other names are those of profiles. */
const TEXT_NAME = /\.(txt|log|out|err)$|^[^.]*$/i;

/** Return true if a drag carries a file. */
function hasFile(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

/** Return the text or the profile that is dropped or pasted: the first file, or else the text. */
async function readGiven(data: DataTransfer | null): Promise<string | File> {
  const file = data?.files[0];
  if (file === undefined) return data?.getData("text/plain") ?? "";
  const isText = TEXT_NAME.test(file.name) && file.size <= MAX_TEXT_BYTES;
  return isText ? file.text() : file;
}

/** Small enough for the server to keep each piece in memory while it arrives. */
const PIECE_BYTES = 384 * 2 ** 10;

/** Send a file in pieces. Resolves with the answer to the last piece, or to one that is refused. */
async function sendFile(
  api: Api,
  file: File,
  signal: AbortSignal,
  onReceived: (bytes: number) => void,
): Promise<OpenedFile> {
  if (file.size === 0) throw new Error(`${file.name} is empty`);
  const key = [...crypto.getRandomValues(new Uint32Array(4))].join("-");
  for (let at = 0; ; at += PIECE_BYTES) {
    const query = { key, name: file.name, size: file.size, at };
    const answer = await api.openFile(query, file.slice(at, at + PIECE_BYTES), signal);
    onReceived(answer.received);
    if (answer.message !== null || answer.received >= file.size) return answer;
  }
}

interface Pasting {
  /** Text or file that the dialog starts with; null while it is closed. */
  given: string | File | null;
  open: () => void;
  close: () => void;
}

/** Manage the paste dialog. With a server, dropping a file or pasting anywhere on the page opens it. */
export function usePaste(possible: boolean): Pasting {
  const [given, setGiven] = useState<string | File | null>(null);
  useEffect(() => {
    if (!possible) return;
    const over = (event: DragEvent): void => {
      if (hasFile(event)) event.preventDefault();
    };
    const drop = (event: DragEvent): void => {
      if (!hasFile(event)) return;
      event.preventDefault();
      void readGiven(event.dataTransfer).then(setGiven);
    };
    const paste = (event: ClipboardEvent): void => {
      if (isEditable(event.target) || document.querySelector("dialog[open]") !== null) return;
      void readGiven(event.clipboardData).then((found) => {
        if (typeof found !== "string" || found.trim() !== "") setGiven(found);
      });
    };
    const stop = new AbortController();
    document.addEventListener("dragover", over, stop);
    document.addEventListener("drop", drop, stop);
    document.addEventListener("paste", paste, stop);
    return () => stop.abort();
  }, []);
  return { given, open: () => setGiven(""), close: () => setGiven(null) };
}

/** Clipboard icon. */
export function PasteIcon() {
  return (
    <svg class="sign" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d="M5.5 3H3.5v11h9V3h-2M5.5 2h5v2.5h-5zM6 8h4M6 10.5h4" />
    </svg>
  );
}

interface Props {
  api: Api;
  /** Pasted or dropped text, or a dropped profile; empty if the box was opened for pasting. */
  given: string | File;
  onClose: () => void;
  /** Called after a text was added as a run, so that the list of runs is fetched again. */
  onPasted: () => void;
}

type Answer = PasteResult | Error | "pending" | null;

/** Dialog that explains the text of an out-of-memory error, and opens it or a dropped profile as a run. */
export function PasteBox({ api, given, onClose, onPasted }: Props) {
  const [text, setText] = useState(typeof given === "string" ? given : "");
  const [answer, setAnswer] = useState<Answer>(null);
  const [sent, setSent] = useState<{ file: File; bytes: number } | null>(null);
  const sending = useRef(new AbortController());
  useEffect(() => () => sending.current.abort(), []);

  const read = (newText: string): void => {
    setText(newText);
    if (newText.trim() === "") return;
    setAnswer("pending");
    api.paste(newText, new AbortController().signal).then(
      (pasted) => {
        setAnswer(pasted);
        if (pasted.recordings.length === 0) return;
        onPasted();
        if (pasted.explanation.length === 0) open(pasted.recordings); // the text of a program
      },
      (error: unknown) => setAnswer(asError(error)),
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
        setAnswer(asError(error));
      },
    );
  };
  const take = (found: string | File): void => (typeof found === "string" ? read(found) : send(found));
  // What was dropped or pasted needs no further click.
  useEffect(() => take(given), [given]);
  const open = (recordings: readonly Summary[]): void => {
    openRecording(recordings[0]);
    onClose();
  };
  const drop = (event: DragEvent): void => {
    if (!hasFile(event)) return;
    event.preventDefault();
    event.stopPropagation();
    void readGiven(event.dataTransfer).then(take);
  };
  return (
    <Dialog
      title="Paste an out-of-memory error"
      label="Paste an error"
      look="help paste"
      testid="paste-box"
      onClose={onClose}
      onDragOver={(event) => {
        if (hasFile(event)) event.preventDefault();
      }}
      onDrop={drop}
    >
      <p class="muted">
        Paste the complete error from the log (XLA, TPU, BFC allocator, PyTorch or CUDA) or the text of a
        compiled module, or drop a file: an error, a profile, a compiled program or a snapshot. It stays in
        memory on the server of this page.
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
          {`Reading ${sent.file.name}: ${formatBytes(sent.bytes)} of ${formatBytes(sent.file.size)}, ` +
            formatShare(sent.bytes, sent.file.size)}
        </p>
      )}
      <Explanation answer={answer} onOpen={open} />
    </Dialog>
  );
}

/** Explanation of the error, or the reason why the text could not be read. */
function Explanation({
  answer,
  onOpen,
}: {
  answer: Answer;
  onOpen: (recordings: readonly Summary[]) => void;
}) {
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
