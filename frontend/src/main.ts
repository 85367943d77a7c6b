/** Builds the page in document.body. TensorBoard calls this; page.ts does on a page of our own. */
export function render(): void {
  document.body.textContent = "";
}
