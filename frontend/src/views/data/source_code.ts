import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Api } from "../../payload/api";
import type { SourceCode, StackFrame } from "../../payload/generated/answers";
import { readStored, writeStored } from "../browser/storage";
import { useFetched } from "./use_fetched";

export type Code = NonNullable<SourceCode["frames"][number]>;

/** Limits of the endpoint. */
const MAX_FRAMES = 64;
const MAX_QUERY = 16_384;

/** What answers about source code: null in a report, which has none. */
export const SourceCodeContext = createContext<Api | null>(null);

interface FramesCode {
  /** The code around each frame; null where it is not readable or has not loaded. */
  code: (Code | null)[];
  loading: boolean;
}

/** Fetch the code around frames. */
export function useSourceCode(frames: readonly StackFrame[]): FramesCode {
  const api = useContext(SourceCodeContext);
  const asked = api === null ? "" : queryOf(frames);
  const { value, error } = useFetched(asked === "" ? null : asked, (key, signal) =>
    api === null ? Promise.reject(new Error("no server")) : api.sourceCode({ frames: key }, signal),
  );
  const loading = asked !== "" && value === null && error === null;
  return { code: frames.map((_, i) => value?.frames[i] ?? null), loading };
}

function queryOf(frames: readonly StackFrame[]): string {
  const named = frames.slice(0, MAX_FRAMES).map(({ file, line }) => [file, Math.max(line, 0)]);
  while (JSON.stringify(named).length > MAX_QUERY) named.pop();
  return named.length === 0 ? "" : JSON.stringify(named);
}

/** Templates of links that open a file in an editor. */
export const EDITORS = [
  { label: "no editor", template: "" },
  { label: "VS Code", template: "vscode://file/{path}:{line}" },
  { label: "PyCharm", template: "pycharm://open?file={path}&line={line}" },
] as const;

/** Other schemes could run something else than an editor. */
const SCHEMES = [
  "vscode",
  "vscode-insiders",
  "vscodium",
  "cursor",
  "windsurf",
  "zed",
  "pycharm",
  "idea",
  "jetbrains",
  "subl",
  "txmt",
  "emacs",
];

/** The editor is a personal preference, like the theme: the browser stores it, and shared URLs omit it. */
const KEY = "tb-memplugin-editor";
const CHANGED = "tb-memplugin-editor-changed";
const MAX_TEMPLATE = 300;

/** Return true for the template of a link to a file in a known editor. */
export function isEditorTemplate(template: string): boolean {
  const [, scheme = ""] = /^([a-z][a-z-]*):\/\/[^\s{]/.exec(template) ?? [];
  return SCHEMES.includes(scheme) && template.includes("{path}") && template.length <= MAX_TEMPLATE;
}

/** Return the link to a line of a file, or null without an editor or a complete path. */
export function editorLink(template: string, file: string, line: number): string | null {
  const path = file.replaceAll("\\", "/");
  // Two slashes begin the name of another machine, which the editor's system would connect to.
  if (!isEditorTemplate(template) || !/^(?:\/(?!\/)|[A-Za-z]:\/(?!\/))/.test(path)) return null;
  if (path.split("/").includes("..")) return null;
  const [drive, rest] = path.startsWith("/") ? ["", path] : [path.slice(0, 2), path.slice(2)];
  // Names in a profile may have any characters, also halves of characters, which cannot be encoded.
  const whole = rest.replace(/[\uD800-\uDFFF]/gu, "\uFFFD");
  const encoded = drive + whole.split("/").map(encodeURIComponent).join("/");
  return template
    .replaceAll("/{path}", `/${encoded.replace(/^\//, "")}`)
    .replaceAll("{path}", encoded)
    .replaceAll("{line}", String(Math.max(Math.trunc(line), 1)));
}

function readTemplate(): string {
  const template = readStored(KEY) ?? "";
  return isEditorTemplate(template) ? template : "";
}

/** Return the template of the user's editor, empty for none, and a function that stores another one. */
export function useEditor(): [string, (template: string) => void] {
  const [template, setTemplate] = useState(readTemplate);
  useEffect(() => {
    const update = (event: Event): void => setTemplate((event as CustomEvent<string>).detail);
    window.addEventListener(CHANGED, update);
    return () => window.removeEventListener(CHANGED, update);
  }, []);
  const store = (wanted: string): void => {
    const next = isEditorTemplate(wanted) ? wanted : "";
    writeStored(KEY, next);
    window.dispatchEvent(new CustomEvent(CHANGED, { detail: next }));
  };
  return [template, store];
}
