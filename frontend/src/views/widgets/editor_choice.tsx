import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { EDITORS, isEditorTemplate } from "../data/editor";

const OTHER = "other";

interface Props {
  template: string;
  onPick: (template: string) => void;
}

/** Choice of the editor that source lines open in. */
export function EditorChoice({ template, onPick }: Props): JSX.Element {
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
