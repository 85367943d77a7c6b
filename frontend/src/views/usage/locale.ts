/**
 * uPlot formats numbers in the browser's language while it loads, and throws where that names none, as "C" does: in
 * WebKit without a locale, the page would stay empty. Import this before uPlot.
 */
try {
  Intl.getCanonicalLocales(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en-US" });
}
