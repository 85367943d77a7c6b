/** Copy text. The clipboard API needs https or localhost; elsewhere a hidden text field still works. */
export async function copyText(text: string): Promise<void> {
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard !== undefined) return clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = (document as { execCommand?: (command: string) => boolean }).execCommand?.("copy") ?? false;
  area.remove();
  if (!copied) throw new Error("copying failed");
}
