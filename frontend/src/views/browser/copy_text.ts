/** Copy text. The clipboard API needs https or localhost, and a permission in a frame; else a text field still works. */
export async function copyText(text: string): Promise<void> {
  const clipboard = navigator.clipboard as Clipboard | undefined;
  try {
    if (clipboard !== undefined) {
      await clipboard.writeText(text);
      return;
    }
  } catch {
    // Not permitted here.
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = (document as { execCommand?: (command: string) => boolean }).execCommand?.("copy") ?? false;
  area.remove();
  if (!copied) throw new Error("The browser does not allow copying; copy the address instead");
}
