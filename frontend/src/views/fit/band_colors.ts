import { cssColor, roleColors } from "../../base/colors";

/** Colors of a role for both themes: a saved picture has the light one. */
export function bandColors(role: number): Record<string, string> {
  return { "--on-light": cssColor(roleColors(false)[role]), "--on-dark": cssColor(roleColors(true)[role]) };
}
