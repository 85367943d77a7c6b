/** Size a canvas in CSS pixels, and return its context, which is cleared and scaled; null where there is none. */
export function sizedContext(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  const context = canvas.getContext("2d");
  if (context === null) return null;
  canvas.width = Math.round(width * devicePixelRatio);
  canvas.height = Math.round(height * devicePixelRatio);
  context.scale(devicePixelRatio, devicePixelRatio);
  context.textBaseline = "middle";
  return context;
}
