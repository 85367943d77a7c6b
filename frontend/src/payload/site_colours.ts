import type { Rows } from "./recording";

/** Colours to choose from: 1 to 10 of base/colors.ts. 0, a grey, stays for what was live before the recording. */
const COLOURS = 10;

/**
 * One colour per name, and for rows without a name per size, since what asks for the same bytes again and again is
 * mostly one place. Names may share a colour; one name never has two, whichever table it comes in.
 */
export function siteColours(rows: Pick<Rows, "length" | "op_name" | "size" | "start">): Uint8Array {
  const colours = new Uint8Array(rows.length);
  const ofName = new Map<number, number>();
  for (let row = 0; row < rows.length; row++) {
    if (rows.start[row] < 0) continue;
    const code = rows.op_name.codes[row];
    let colour = ofName.get(code);
    if (colour === undefined) {
      const name = rows.op_name.at(row);
      colour = name === "" ? 0 : colourOfText(name);
      ofName.set(code, colour);
    }
    colours[row] = colour === 0 ? colourOfText(String(rows.size[row])) : colour;
  }
  return colours;
}

/** FNV-1a: spreads names that differ in a digit. */
function colourOfText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return 1 + ((hash >>> 0) % COLOURS);
}
