/**
 * XProf's own requests. Those for data of its memory tools, which can take seconds and hundreds of megabytes,
 * wait while our page covers them; from those for lists we learn what XProf's sidebar offers. Its charts get a
 * stub where they cannot be loaded.
 */

import type { SidebarLists } from "../base/xprof_bridge";
import { isMemoryTool } from "./xprof_url";

/** Latest data request of each tool. XProf repeats it for every place; the answer to an earlier one would be wrong. */
let waiting = new Map<string, () => void>();
/** Parameters of XProf's last data request. */
export let lastQuery = new URLSearchParams();

let runs: readonly string[] | null = null;
const hosts = new Map<string, string[]>();
const listeners = new Set<() => void>();

export function sidebarLists(run: string): SidebarLists {
  return { runs, hosts: hosts.get(run) ?? null };
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function sendWaiting(): void {
  const requests = [...waiting.values()];
  dropWaiting();
  for (const send of requests) send();
}

export function dropWaiting(): void {
  waiting = new Map();
}

/** Watch requests from now on. `isCovered`: data requests of XProf's memory tools wait. */
export function watchRequests(isCovered: () => boolean): void {
  const addresses = new WeakMap<XMLHttpRequest, string>();
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with their request below
  const { open, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (this: XMLHttpRequest, ...details: unknown[]) {
    addresses.set(this, String(details[1]));
    Reflect.apply(open, this, details);
  };
  XMLHttpRequest.prototype.send = function (this: XMLHttpRequest, body) {
    const url = new URL(addresses.get(this) ?? "", document.baseURI);
    const list = /\/(runs|hosts)$/.exec(url.pathname)?.[1];
    if (list !== undefined)
      this.addEventListener("load", () => {
        if (this.status === 200) learn(list, url.searchParams.get("run") ?? "", this.response);
      });
    const tool = url.pathname.endsWith("/data") ? url.searchParams.get("tag") : null;
    const isAboutMemory = tool !== null && isMemoryTool(tool);
    if (isAboutMemory) lastQuery = url.searchParams;
    if (isAboutMemory && isCovered())
      waiting.set(tool, () => {
        if (this.readyState === XMLHttpRequest.OPENED) send.call(this, body);
      });
    else send.call(this, body);
  };
}

function learn(list: string, run: string, response: unknown): void {
  try {
    const found: unknown = typeof response === "string" ? JSON.parse(response) : response;
    if (!Array.isArray(found)) return;
    if (list === "runs") runs = found.map(String);
    else {
      const names = found.map((host: { hostname: unknown }) => String(host.hostname));
      hosts.set(run, [...new Set([...(hosts.get(run) ?? []), ...names])]);
    }
  } catch {
    return; // an unknown answer: our page shows its own pickers
  }
  for (const listener of [...listeners]) listener();
}

/**
 * Stub of Google Charts for when it cannot be loaded. Without the network XProf's pages fail at their first chart, in
 * the middle of an update: lists do not open and links do not work. With this stub charts stay empty and
 * the page works.
 */
const stub: object = new Proxy(
  // Arrow functions cannot be called with `new`.
  function (): object {
    return stub;
  },
  {
    get: (_, name) => {
      if (name === "then") return undefined; // otherwise `await` would never end
      // XProf serializes charts as JSON, with null for no data.
      return name === Symbol.toPrimitive ? () => "null" : stub;
    },
  },
);

/** Install the stub. Call before XProf loads its charts. */
export function stubCharts(): void {
  const stand = (event: Event) => {
    if (event.target instanceof HTMLScriptElement && event.target.src.endsWith("/charts/loader.js"))
      Reflect.set(window, "google", Reflect.get(window, "google") ?? stub);
  };
  // Load errors do not bubble, but can be captured.
  document.addEventListener("error", stand, true);
}
