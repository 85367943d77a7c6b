import { useState } from "preact/hooks";

/**
 * Copy text. The clipboard API needs https or localhost, and a permission in a frame; else a text field still works.
 */
export async function copyText(text: string): Promise<void> {
  const clipboard = navigator.clipboard as Clipboard | undefined;
  try {
    if (clipboard !== undefined) {
      await clipboard.writeText(text);
      return;
    }
  } catch {
    // Not permitted here.
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = (document as { execCommand?: (command: string) => boolean }).execCommand?.("copy") ?? false;
  area.remove();
  if (!copied) throw new Error("The browser does not allow copying; copy the address instead");
}

/** Download a file. */
export function saveBlob(blob: Blob, name: string): void {
  const link = document.createElement("a");
  const url = URL.createObjectURL(blob);
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** Download a table as CSV. */
export function saveText(text: string, name: string): void {
  saveBlob(new Blob([text], { type: "text/csv" }), name);
}

/** Return a function that copies a text, and what it has to say about that for a moment; empty otherwise. */
export function useCopying(): [said: string, copy: (text: string) => void] {
  const [said, setSaid] = useState("");
  const say = (words: string): void => {
    setSaid(words);
    window.setTimeout(() => setSaid(""), 2000);
  };
  const copy = (text: string): void =>
    void copyText(text).then(
      () => say("Copied"),
      () => say("The browser blocked copying"),
    );
  return [said, copy];
}
