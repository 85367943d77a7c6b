import { useEffect, useState } from "preact/hooks";
import { isEditable } from "../../base/keys";
import { hasFile, readGiven } from "./dropped_file";

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
    document.addEventListener("dragover", over);
    document.addEventListener("drop", drop);
    document.addEventListener("paste", paste);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("drop", drop);
      document.removeEventListener("paste", paste);
    };
  }, []);
  return { given, open: () => setGiven(""), close: () => setGiven(null) };
}
