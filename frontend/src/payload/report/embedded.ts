/**
 * Offline reports: the page in one file. The document contains the page's files and the responses to all its
 * requests, in elements that browsers neither run nor display. Responses are gzip in base64, so no name from
 * a profile becomes markup.
 */
import type { Api, Report } from "../api";
import type { Fetch } from "../server";
import { ApiError } from "../server";
import { createApi } from "../api";
import { readUsage } from "../recording/usage";
import { requestJson, requestTables } from "../request";
import type { AllRuntimeToProgram } from "../generated/answers";
import { bufferDetails, runtimeToProgramAt, readDetailTables, usageWindow } from "./offline_answers";

const INDEX = "script[data-report]";
const ANSWERS = "script[data-answer]";
const FILES = "script[data-file]";

/** Index of the element that contains the response to a request. */
interface Index extends Report {
  answers: Record<string, number | undefined>;
}

export function isReport(): boolean {
  return document.querySelector(INDEX) !== null;
}

/** Return the URL of one of the page's files; in a report, a blob URL with the file's contents. */
export function fileUrl(url: string): string {
  const blocks = [...document.querySelectorAll<HTMLElement>(FILES)];
  const block = blocks.find(({ dataset }) => url.endsWith(`/${dataset["file"]}`));
  if (block === undefined) return url;
  const type = url.endsWith(".css") ? "text/css" : "text/javascript";
  return URL.createObjectURL(new Blob([decodeBase64(block)], { type }));
}

/** Return an API that reads the document, or null if the page is not a report. */
export async function reportApi(): Promise<Api | null> {
  const index = document.querySelector(INDEX);
  if (index === null) return null;
  const { answers, ...report } = (await decompress(index).json()) as Index;
  const fetch = fetchFromDocument(answers);
  const api = createApi(fetch);
  const all = {
    rows: memoizeLast((id) => api.rows({ id }, null)),
    details: memoizeLast(async (id) => readDetailTables(await requestTables(fetch, "details", { id }, null))),
    usage: memoizeLast(async (id) =>
      readUsage((await requestTables(fetch, "usage", { id }, null)).table("usage")),
    ),
    joins: memoizeLast((id) => requestJson<AllRuntimeToProgram>(fetch, "joins", { id }, null)),
  };
  return {
    ...api,
    report,
    rows: ({ id }) => all.rows(id),
    usage: async (query) => usageWindow(await all.usage(query.id), query),
    details: async ({ id, row }) => bufferDetails(await all.rows(id), await all.details(id), row),
    joins: async ({ id, at }) => runtimeToProgramAt(await all.joins(id), at),
  };
}

function fetchFromDocument(answers: Index["answers"]): Fetch {
  const blocks = document.querySelectorAll(ANSWERS);
  return (route, query) => {
    const parameters = Object.entries(query).map(([name, value]) => `${name}=${value}`);
    const number = answers[[route, ...parameters.sort()].join("&")];
    return number === undefined
      ? Promise.reject(
          new ApiError("Not included in this report", `api/${route}`, "open the original profile"),
        )
      : Promise.resolve(decompress(blocks[number]));
  };
}

function decodeBase64(block: Element): Uint8Array<ArrayBuffer> {
  const text = atob(block.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function decompress(block: Element): Response {
  return new Response(new Blob([decodeBase64(block)]).stream().pipeThrough(new DecompressionStream("gzip")));
}

/** Cache the last response: the page shows one recording and requests the same data many times. */
function memoizeLast<T>(read: (id: string) => Promise<T>): (id: string) => Promise<T> {
  let last: { id: string; answer: Promise<T> } | null = null;
  return (id) => (last?.id === id ? last : (last = { id, answer: read(id) })).answer;
}
