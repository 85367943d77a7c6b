import type { JSX } from "preact";
import { useContext, useState } from "preact/hooks";
import { ButtonGroup } from "../widgets/button_group";
import { saveBlob } from "../browser/save_file";
import { capitalize } from "../data/terms";
import type { Picture } from "./picture";
import { pngOf, svgText } from "./picture";
import { pictureFileName, PictureNamesContext, titledPicture } from "./titled_picture";

interface Props {
  /** Name of the chart, such as "flame graph". */
  of: string;
  /** File name without suffix. */
  fileName: string;
  /** Null while the chart is empty. */
  draw: () => Picture | null;
}

const FORMATS = [
  { format: "svg", label: "SVG", about: "as vector graphics" },
  { format: "png", label: "PNG", about: "as an image" },
] as const;

/** Buttons that save a chart with its title and legend as SVG or PNG, on a light background in either theme. */
export function SavePicture({ of, fileName, draw }: Props): JSX.Element {
  const [failed, setFailed] = useState("");
  const names = useContext(PictureNamesContext);
  const save = async (format: "svg" | "png"): Promise<void> => {
    const drawn = draw();
    if (drawn === null) return;
    const { run, lines } = names();
    const drawing = titledPicture(drawn, [capitalize(of), ...lines]);
    const blob =
      format === "png" ? await pngOf(drawing) : new Blob([svgText(drawing)], { type: "image/svg+xml" });
    saveBlob(blob, `${pictureFileName(run, fileName)}.${format}`);
  };
  return (
    <ButtonGroup label={`Save the ${of}`}>
      {FORMATS.map(({ format, label, about }) => (
        <button
          key={format}
          aria-label={`${of}, ${label}`}
          title={failed || `Save the ${of} ${about}`}
          data-testid={`save-${of.replaceAll(" ", "-")}-${format}`}
          onClick={() => {
            save(format).then(
              () => setFailed(""),
              (error: unknown) =>
                setFailed(`Not saved: ${error instanceof Error ? error.message : String(error)}`),
            );
          }}
        >
          {label}
        </button>
      ))}
      {failed !== "" && (
        <span class="muted" role="alert">
          {failed}
        </span>
      )}
    </ButtonGroup>
  );
}
