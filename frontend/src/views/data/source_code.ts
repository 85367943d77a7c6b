import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Api } from "../../payload/api";
import type { SourceCode, StackFrame } from "../../payload/generated/answers";
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
