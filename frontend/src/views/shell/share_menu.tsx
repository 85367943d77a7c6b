import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "../../base/errors";
import { formatBytes } from "../../base/units";
import type { Api } from "../../payload/api";
import { copyText, saveBlob } from "../browser/export";
import { printPage } from "../browser/printing";
import { capitalize } from "../data/terms";
import { type PictureFormat, type SavableChart, savableCharts } from "../drawing/save_picture";
import { sharedUrl } from "../state/url";
import { store } from "../state/view_state";

/** The end of a complete report: a connection that ends early is no error in every browser and server. */
const END = "</html>";

/** Download the report of a run. Rejects where the server has none, or where it is incomplete. */
async function downloadReport(
  api: Api,
  run: string,
  onProgress: (bytes: number) => void,
): Promise<{ blob: Blob; name: string }> {
  const response = await api.downloadReport(run);
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = response.body?.getReader();
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    pieces.push(read.value);
    bytes += read.value.length;
    onProgress(bytes);
  }
  const blob = new Blob(pieces, { type: "text/html" });
  if (!(await blob.slice(-64).text()).includes(END))
    throw new Error("The report is incomplete: the server stopped sending it. Try again.");
  const [, name = "memory-report.html"] =
    /filename="([\w.-]+)"/.exec(response.headers.get("Content-Disposition") ?? "") ?? [];
  return { blob, name };
}

interface Props {
  api: Api;
  /** Run of the report; empty without runs. */
  run: string;
}

/** Button with a menu: copy the link, save a report or a chart, print. */
export function ShareMenu({ api, run }: Props) {
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const { status, busy, copy, save, picture, reset } = useShare(api, run);
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };

  useLayoutEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLElement>("[role=menuitem]:not(:disabled)")?.focus();
    const onPress = (event: Event): void => {
      if (event.target instanceof Node && root.current?.contains(event.target) !== true) setOpen(false);
    };
    document.addEventListener("pointerdown", onPress);
    return () => document.removeEventListener("pointerdown", onPress);
  }, [open]);

  return (
    <div
      ref={root}
      class="share"
      onKeyDown={(event) => {
        if (open) onMenuKey(event, close);
      }}
      onFocusOut={(event) => {
        const to = event.relatedTarget;
        if (to instanceof Node && root.current?.contains(to) !== true) setOpen(false);
      }}
    >
      <button
        ref={button}
        class="quiet"
        data-testid="share"
        aria-haspopup="menu"
        aria-expanded={open}
        title="Copy the link, save a report or a chart, or print"
        onClick={() => {
          if (!busy) reset();
          setOpen(!open);
        }}
      >
        Share
      </button>
      {open && (
        <div class="share-popup">
          <div role="menu" aria-label="Share">
            <Item
              testid="share-link"
              label="Copy link"
              about="The address of this page with everything that is selected"
              onPick={copy}
            />
            {run !== "" && (
              <Item
                testid="share-report"
                label="Save report"
                about={`${run} as one file that works offline`}
                disabled={busy}
                onPick={save}
              />
            )}
            <Charts onPick={picture} />
            <Item
              testid="share-print"
              label="Print…"
              about="Whole charts and tables, on white"
              onPick={() => {
                setOpen(false);
                printPage();
              }}
            />
          </div>
          <p class="share-status muted" role="status" data-testid="share-status">
            {status}
          </p>
        </div>
      )}
    </div>
  );
}

interface ItemProps {
  testid: string;
  label: string;
  about: string;
  disabled?: boolean;
  onPick: () => void;
}

function Item({ testid, label, about, disabled = false, onPick }: ItemProps) {
  return (
    <button role="menuitem" tabindex={-1} data-testid={testid} disabled={disabled} onClick={onPick}>
      {label}
      <span class="muted">{about}</span>
    </button>
  );
}

const FORMATS = ["svg", "png"] as const;

/** The charts on the page, each as a vector graphic or an image. */
function Charts({ onPick }: { onPick: (chart: SavableChart, format: PictureFormat) => void }) {
  return (
    <>
      {savableCharts().map((chart) => (
        <div key={chart.of} class="share-picture" role="group" aria-label={chart.of}>
          <span>{capitalize(chart.of)}</span>
          {FORMATS.map((format) => (
            <button
              key={format}
              role="menuitem"
              tabindex={-1}
              aria-label={`${chart.of}, ${format.toUpperCase()}`}
              data-testid={`save-${chart.of.replaceAll(" ", "-")}-${format}`}
              onClick={() => onPick(chart, format)}
            >
              {format.toUpperCase()}
            </button>
          ))}
        </div>
      ))}
    </>
  );
}

function onMenuKey(event: KeyboardEvent, close: () => void): void {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.currentTarget instanceof HTMLElement)) return;
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)")];
  const at = items.findIndex((item) => item === document.activeElement);
  const to: Partial<Record<string, number>> = {
    ArrowDown: (at + 1) % items.length,
    ArrowUp: (at + items.length - (at < 0 ? 0 : 1)) % items.length,
    Home: 0,
    End: items.length - 1,
  };
  if (event.key === "Escape") close();
  else if (to[event.key] !== undefined) items[to[event.key] ?? 0]?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** The actions of the menu, and a line about the last one. */
function useShare(api: Api, run: string) {
  const [status, setStatus] = useState("");
  const [busy, setBusy] = useState(false);
  const fail = (error: unknown): void => setStatus(messageOf(error));
  const copy = (): void => {
    copyText(sharedUrl(store.get())).then(() => setStatus("Link copied"), fail);
  };
  const save = (): void => {
    setBusy(true);
    setStatus("Writing the report…");
    downloadReport(api, run, (bytes) => setStatus(`Writing the report… ${formatBytes(bytes)}`))
      .then(({ blob, name }) => {
        saveBlob(blob, name);
        setStatus(`Saved ${name}, ${formatBytes(blob.size)}`);
      }, fail)
      .finally(() => setBusy(false));
  };
  const picture = (chart: SavableChart, format: PictureFormat): void => {
    setStatus("Drawing…");
    chart
      .save(format)
      .then((name) => setStatus(name === null ? "The chart is empty." : `Saved ${name}`), fail);
  };
  return { status, busy, copy, save, picture, reset: () => setStatus("") };
}
