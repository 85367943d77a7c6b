import { decodeTables, type Tables } from "./tables/tables";

export type Signal = AbortSignal | null;

/** Values of URL parameters, as the page has them. */
type Query = Record<string, string | number | boolean | null | undefined>;

/** Requests the JSON answer of a route; a body is sent as a POST. The type is that of the endpoint. */
export async function requestJson<Answer>(
  fetch: Fetch,
  route: string,
  query: Query,
  signal: Signal,
  body?: string | Blob,
): Promise<Answer> {
  const init = body === undefined ? undefined : { method: "POST", body };
  return (await (await fetch(route, parameters(query), signal, init)).json()) as Answer;
}

/** Requests the tables of a route. */
export async function requestTables(
  fetch: Fetch,
  route: string,
  query: Query,
  signal: Signal,
): Promise<Tables> {
  return decodeTables(await (await fetch(route, parameters(query), signal)).arrayBuffer());
}

/** Return URL parameters. Flags are 0 or 1; null, undefined and empty values are left out: the server has defaults. */
function parameters(query: Query): Record<string, string | number> {
  const given: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== "")
      given[name] = typeof value === "boolean" ? Number(value) : value;
  return given;
}

/** An error from the backend: what happened, where, and what to do. */
export class ApiError extends Error {
  constructor(
    readonly what: string,
    readonly where: string,
    readonly remedy: string,
  ) {
    super([what, where, remedy].filter((part) => part !== "").join(": "));
  }
}

/** The last response is still up to date: the server sent no new one. */
export class Unchanged extends Error {}

/** Fetch the response of a route. Rejects with ApiError if there is none. */
export type Fetch = (
  route: string,
  query: Record<string, string | number>,
  signal: AbortSignal | null,
  init?: RequestInit,
) => Promise<Response>;

/** Return a function that sends requests to the backend below `base`, the URL of the page's folder. */
export function fetchFromServer(base: string): Fetch {
  return async (route, query, signal, init = {}) => {
    const url = new URL(`api/${route}`, base);
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, String(value));
    const response = await fetch(url, { ...init, signal }).catch((error: unknown) => {
      if (signal?.aborted === true) throw error;
      throw new ApiError("The server does not respond", url.host, "start it again, then reload this page");
    });
    if (response.status === 304) throw new Unchanged(route);
    if (!response.ok) throw await readError(response, route);
    return response;
  };
}

/** Return a function that fetches only new responses: it rejects with Unchanged while the last one is up to date. */
export function onlyChanges(fetch: Fetch): Fetch {
  const tags = new Map<string, string>();
  return async (route, query, signal, init = {}) => {
    const key = JSON.stringify([route, query]);
    const tag = tags.get(key);
    const headers = tag === undefined ? {} : { "If-None-Match": tag };
    const response = await fetch(route, query, signal, { ...init, headers });
    const next = response.headers.get("ETag");
    // Some proxies drop the header, so that every response is new.
    if (next !== null) tags.set(key, next);
    return response;
  };
}

async function readError(response: Response, route: string): Promise<ApiError> {
  try {
    const { error } = (await response.json()) as { error: { what: string; where: string; remedy: string } };
    return new ApiError(error.what, error.where, error.remedy);
  } catch {
    return new ApiError(
      `The server responded with ${response.status} ${response.statusText}`,
      `api/${route}`,
      "",
    );
  }
}
