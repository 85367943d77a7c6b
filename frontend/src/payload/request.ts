import type { Fetch } from "./server";
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
