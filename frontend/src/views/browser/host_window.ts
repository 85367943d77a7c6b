/**
 * The window that people see: its URL is what they copy and reload, its theme is what surrounds us. TensorBoard and
 * XProf show us in a frame of their own origin; elsewhere it is our own window.
 */
export function hostWindow(): Window {
  try {
    if (window.parent !== window && window.parent.location.origin === window.location.origin)
      return window.parent;
  } catch {
    // A frame of another origin: nothing of it is ours to read.
  }
  return window;
}
