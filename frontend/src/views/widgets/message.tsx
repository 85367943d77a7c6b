import type { ComponentChildren } from "preact";
import { ApiError } from "../../payload/server";

/** Message in place of content: the reason and the remedy. */
export function Message(props: {
  title: string;
  children?: ComponentChildren;
  /** Paragraphs below the text. */
  more?: ComponentChildren;
  error?: boolean;
}) {
  return (
    <div
      class={props.error === true ? "message message-error" : "message"}
      role={props.error ? "alert" : "status"}
    >
      <strong>{props.title}</strong>
      {props.children !== undefined && <p>{props.children}</p>}
      {props.more}
    </div>
  );
}

/** Sentences about what a page does not list, without being problems. */
export function Notes({ notes }: { notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <div class="notes muted" data-testid="notes">
      {notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
    </div>
  );
}

export function ErrorMessage({ error }: { error: Error }) {
  if (!(error instanceof ApiError))
    return (
      <Message error title="This view failed">
        {error.message}. Choose another recording, or reload the page.
      </Message>
    );
  return (
    <Message error title={error.what}>
      {error.where !== "" && <code>{error.where}</code>}
      {error.remedy !== "" && <span>{sentence(error.remedy)}</span>}
    </Message>
  );
}

function sentence(text: string): string {
  return ` ${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}
