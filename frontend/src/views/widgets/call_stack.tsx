import { useMemo, useState } from "preact/hooks";
import { formatCounted } from "../../base/units";
import type { StackFrame } from "../../payload/generated/answers";
import {
  type Code,
  editorLink,
  EDITORS,
  isEditorTemplate,
  useEditor,
  useSourceCode,
} from "../data/source_code";
import { useTerms } from "../data/terms";
import { SourcePlace } from "./labels";

const OTHER = "other";

/** Choice of the editor that source lines open in. */
function EditorChoice({ template, onPick }: { template: string; onPick: (template: string) => void }) {
  const preset = EDITORS.some((editor) => editor.template === template);
  const [typing, setTyping] = useState(!preset);
  const [draft, setDraft] = useState(template);
  const wrong = draft !== "" && !isEditorTemplate(draft);
  return (
    <span class="editor-choice">
      <select
        data-testid="editor-choice"
        aria-label="Editor that source lines open in"
        title="Editor that source lines open in; this browser remembers it"
        value={typing ? OTHER : template}
        onChange={(event) => {
          const { value } = event.currentTarget;
          setTyping(value === OTHER);
          if (value !== OTHER) onPick(value);
        }}
      >
        {EDITORS.map(({ label, template: value }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
        <option value={OTHER}>other editor…</option>
      </select>
      {typing && (
        <input
          data-testid="editor-template"
          aria-label="Link template of the editor"
          aria-invalid={wrong}
          title={wrong ? "Use the scheme of an editor, such as vscode://file/{path}:{line}" : ""}
          placeholder="vscode://file/{path}:{line}"
          spellcheck={false}
          value={draft}
          onInput={(event) => {
            setDraft(event.currentTarget.value);
            onPick(event.currentTarget.value);
          }}
        />
      )}
    </span>
  );
}

/** Frames shown before the list is expanded. */
const MAX_FRAMES = 12;

/** Call stack of a buffer or allocation, innermost frame first, with the code of frames whose files are readable. */
export function CallStack({ frames, title = "Stack" }: { frames: StackFrame[]; title?: string }) {
  const terms = useTerms();
  const [all, setAll] = useState(false);
  const [toggled, setToggled] = useState<ReadonlySet<number>>(new Set());
  const [template, setTemplate] = useEditor();
  const shown = useMemo(() => (all ? frames : frames.slice(0, MAX_FRAMES)), [all, frames]);
  const { code, loading } = useSourceCode(shown);
  // The innermost frame of the user's own code is open.
  const first = code.findIndex((lines) => lines !== null);
  const toggle = (i: number): void => {
    const next = new Set(toggled);
    if (!next.delete(i)) next.add(i);
    setToggled(next);
  };
  return (
    <section aria-busy={loading}>
      <header class="stack-head">
        <h3>{title}</h3>
        {frames.some(({ file }) => file !== "") && <EditorChoice template={template} onPick={setTemplate} />}
      </header>
      {frames.length === 0 && (
        <p class="muted">
          The profile has no call stack for this {terms.item}.
          {terms.item === "buffer" && " Parameters and compiler-generated buffers have none."}
        </p>
      )}
      <ol class="stack">
        {shown.map((frame, i) => (
          <Frame
            {...{ frame, template }}
            key={i}
            code={code[i]}
            open={(i === first) !== toggled.has(i)}
            onToggle={() => toggle(i)}
          />
        ))}
      </ol>
      {shown.length < frames.length && (
        <button class="link" onClick={() => setAll(true)}>
          {formatCounted(frames.length - shown.length, "more frame")}
        </button>
      )}
    </section>
  );
}

interface FrameProps {
  frame: StackFrame;
  code: Code | null;
  open: boolean;
  /** Link template of the user's editor; empty for none. */
  template: string;
  onToggle: () => void;
}

function Frame({ frame: { function: called, file, line }, code, open, template, onToggle }: FrameProps) {
  const link = editorLink(template, code?.file ?? file, line);
  const place = file === "" ? "" : `${shortPath(file)}:${line}`;
  return (
    <li>
      <b>{called === "" ? "(unnamed)" : called}</b>
      {file !== "" && (
        <code title={`${file}:${line}`}>
          {code === null ? (
            <SourcePlace text={place} />
          ) : (
            <button
              class="link"
              data-testid="frame-code-toggle"
              aria-expanded={open}
              title={`${open ? "Hide" : "Show"} the code of ${code.path}`}
              onClick={onToggle}
            >
              {open ? "▾" : "▸"} <SourcePlace text={place} />
            </button>
          )}
        </code>
      )}
      {link !== null && (
        <a
          href={link}
          data-testid="editor-link"
          aria-label={`Open ${place} in the editor`}
          title="Open in the editor"
        >
          ↗
        </a>
      )}
      {code !== null && open && <CodeLines code={code} line={line} />}
    </li>
  );
}

function CodeLines({ code: { path, first, lines }, line }: { code: Code; line: number }) {
  return (
    <figure class="frame-code" data-testid="frame-code">
      <figcaption class="muted">{path}</figcaption>
      <pre tabindex={0} aria-label={`Lines ${first} to ${first + lines.length - 1} of ${path}`}>
        {lines.map((text, i) => (
          <span key={i} class={first + i === line ? "here" : ""}>
            <i>{first + i}</i>
            {`${text}\n`}
          </span>
        ))}
      </pre>
    </figure>
  );
}

/** Return the last parts of a path; the tooltip has all of it. */
function shortPath(path: string): string {
  const parts = path.split("/");
  return parts.length > 3 ? `…/${parts.slice(-3).join("/")}` : path;
}
