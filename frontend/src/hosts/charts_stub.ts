/**
 * Stub of Google Charts for when it cannot be loaded. Without the network XProf's pages fail at their first chart, in
 * the middle of an update: lists do not open and links do not work. With this stub charts stay empty and the page works.
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
