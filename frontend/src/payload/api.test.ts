import { afterEach, describe, expect, it, vi } from "vitest";
import { createApi } from "./api";
import { ApiError, fetchFromServer, Unchanged } from "./server";

const BASE = "http://localhost/tb/data/plugin/memory/";
const api = createApi(fetchFromServer(BASE));
const signal = new AbortController().signal;

function answerWith(answer: Response | Error): ReturnType<typeof vi.fn> {
  const fetch = vi.fn(() => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)));
  vi.stubGlobal("fetch", fetch);
  return fetch;
}

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error("It did not fail.");
}

afterEach(() => vi.unstubAllGlobals());

describe("the api", () => {
  it("requests paths below its own folder behind any prefix, and escapes names", async () => {
    const fetch = answerWith(Response.json({ recordings: [], problems: [] }));
    await api.recordings({ run: "train/a&b" }, signal);
    expect(String(fetch.mock.calls[0][0])).toBe(`${BASE}api/recordings?run=train%2Fa%26b`);
  });

  it("passes on the backend's error", async () => {
    const error = { what: "Unknown run", where: "nope", remedy: "choose another" };
    answerWith(Response.json({ error }, { status: 404 }));
    expect(await failure(api.recordings({ run: "nope" }, signal))).toMatchObject(error);
  });

  it("names the route when the response is not a backend error", async () => {
    answerWith(new Response("<h1>Bad Gateway</h1>", { status: 502, statusText: "Bad Gateway" }));
    const { what, where } = await failure(api.runs(signal));
    expect([what, where]).toEqual(["The server responded with 502 Bad Gateway", "api/runs"]);
  });

  it("reports a server that does not respond", async () => {
    answerWith(new TypeError("Failed to fetch"));
    expect((await failure(api.runs(signal))).what).toBe("The server does not respond");
  });

  it("asks for changes alone, once it has an answer", async () => {
    const fetch = vi.fn<(url: URL, init: RequestInit) => Promise<Response>>(() =>
      Promise.resolve(Response.json({ recordings: [] }, { headers: { ETag: 'W/"1"' } })),
    );
    vi.stubGlobal("fetch", fetch);
    const changes = api.changes();
    await changes.recordings({ run: "a" }, signal);
    await changes.recordings({ run: "b" }, signal);
    fetch.mockResolvedValue(new Response(null, { status: 304, headers: { ETag: 'W/"1"' } }));
    await expect(changes.recordings({ run: "a" }, signal)).rejects.toThrow(Unchanged);
    expect(fetch.mock.calls.map(([, { headers }]) => headers)).toEqual([
      {},
      {},
      { "If-None-Match": 'W/"1"' },
    ]);
  });
});
