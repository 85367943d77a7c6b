/** One stop of the Tab key for all tabs; arrows go from one to the next, Enter opens it: others may take long. */
export function moveTabFocus(event: KeyboardEvent): void {
  const by = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
  if (by === undefined || !(event.currentTarget instanceof HTMLElement)) return;
  const tabs = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
  const at = tabs.findIndex((tab) => tab === document.activeElement);
  event.preventDefault();
  tabs.at(Math.min(Math.max(at + by, 0), tabs.length - 1))?.focus();
}
