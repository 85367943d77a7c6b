/**
 * Google Charts where it cannot be loaded. XProf's pages take it for granted: without the network they fail at their
 * first chart in the middle of an update, and then their lists do not open and their links lead nowhere. With this in
 * its place they leave their charts empty and go on.
 */
const stub: object = new Proxy(
  // An arrow function could not be called with `new`.
  function (): object {
    return stub;
  },
  {
    get: (_, name) => {
      if (name === "then") return undefined; // awaiting it must not wait for ever
      // Charts are given over as JSON, and null is what XProf itself has for no data.
      return name === Symbol.toPrimitive ? () => "null" : stub;
    },
  },
);

/** Call before XProf asks for its charts. */
export function stubCharts(): void {
  const stand = (event: Event) => {
    if (event.target instanceof HTMLScriptElement && event.target.src.endsWith("/charts/loader.js"))
      Reflect.set(window, "google", Reflect.get(window, "google") ?? stub);
  };
  // Failures to load do not bubble, but they can be captured on the way down.
  document.addEventListener("error", stand, true);
}
