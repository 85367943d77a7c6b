import { useEffect, useState } from "preact/hooks";
import { hasFile, readText } from "./dropped_file";

interface Pasting {
  /** Initial text of the dialog; null while it is closed. */
  text: string | null;
  open: () => void;
  close: () => void;
}

/** Manage the paste dialog. With a server, dropping a file anywhere on the page opens it. */
export function usePaste(possible: boolean): Pasting {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    if (!possible) return;
    const over = (event: DragEvent): void => {
      if (hasFile(event)) event.preventDefault();
    };
    const drop = (event: DragEvent): void => {
      if (!hasFile(event)) return;
      event.preventDefault();
      void readText(event).then(setText);
    };
    document.addEventListener("dragover", over);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("drop", drop);
    };
  }, []);
  return { text, open: () => setText(""), close: () => setText(null) };
}
