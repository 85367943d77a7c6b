/** Left and right move the focus between the elements of a group; Tab stops once for all of them. */
export function goToNext(event: KeyboardEvent): void {
  if (!(event.target instanceof HTMLElement)) return;
  const { previousElementSibling: before, nextElementSibling: after } = event.target;
  const next = event.key === "ArrowLeft" ? before : event.key === "ArrowRight" ? after : null;
  if (!(next instanceof HTMLElement)) return;
  event.preventDefault();
  next.focus();
}
