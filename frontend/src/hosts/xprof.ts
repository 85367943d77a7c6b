/**
 * Script that runs in XProf's page, before XProf's code. While Memory Viewer or Memory Profile is the selected tool, it
 * shows our page instead; the Tools list stays, and a button switches to XProf's own view and back.
 */
import { stubCharts } from "./charts_stub";
import { correctUrl, isMemoryTool, pageUrl, readPage, isSamePage, type XprofPage } from "./xprof_url";

/** Element in which XProf shows the selected tool, to the right of the Tools list. */
const MAIN_AREA = "mat-sidenav-content";
const RETRY_MS = 100;

const STYLE = `
.tb-memplugin-over > :not(iframe) { display: none !important; }
.tb-memplugin-over > iframe { display: block; width: 100%; height: 100%; border: 0; }
.tb-memplugin-button { position: fixed; top: 16px; right: 16px; z-index: 1000; padding: 6px 12px; cursor: pointer;
  font: 500 13px system-ui, sans-serif; color: #174ea6; background: #fff; border: 1px solid #aecbfa;
  border-radius: 4px; text-decoration: none; }
`;

let currentPage: XprofPage | null = null;
let isStock = false;
/** Pattern of data requests by XProf's hidden page, which can take seconds and hundreds of megabytes. */
let pendingRequests: (() => void)[] = [];
/** Parameters of XProf's last request. */
let lastQuery = new URLSearchParams();

const frame = document.createElement("iframe");
frame.title = "Memory";
frame.dataset["host"] = "xprof";
const button = document.createElement("button");
button.className = "tb-memplugin-button";
button.dataset["testid"] = "xprof-stock-toggle";
button.onclick = () => {
  isStock = !isStock;
  update();
};

function update(): void {
  const place = readPage(new URL(location.href));
  if (place !== null && (currentPage === null || !isSamePage(currentPage, place))) load(place);
  if (place === null) {
    isStock = false;
    pendingRequests = [];
  }
  currentPage = place;
  placeFrame();
}

function load(place: XprofPage): void {
  const url = new URL(pageUrl(place), document.baseURI).href;
  // A new src would add a history entry.
  if (frame.isConnected) frame.contentWindow?.location.replace(url);
  else frame.src = url;
}

function placeFrame(): void {
  const area = document.querySelector(MAIN_AREA);
  if (currentPage === null) {
    area?.classList.remove("tb-memplugin-over");
    frame.remove();
    button.remove();
    return;
  }
  if (area === null) {
    setTimeout(placeFrame, RETRY_MS);
    return;
  }
  area.classList.toggle("tb-memplugin-over", !isStock);
  frame.style.display = isStock ? "none" : "";
  // Moving a frame within the document reloads it.
  if (frame.parentElement !== area) area.append(frame);
  button.textContent = isStock ? "Back to tb-memplugin" : "Stock view";
  document.body.append(button);
  if (isStock) sendPending();
}

function sendPending(): void {
  const requests = pendingRequests;
  pendingRequests = [];
  for (const send of requests) send();
  // Charts laid out while hidden have no size yet.
  window.dispatchEvent(new Event("resize"));
}

function followUrl(): void {
  for (const name of ["pushState", "replaceState"] as const) {
    const write = history[name].bind(history);
    history[name] = (state: unknown, title: string, url?: string | URL | null) => {
      if (url === undefined || url === null) write(state, title);
      else {
        const text = new URL(url, document.baseURI).href;
        write(state, title, correctUrl(new URL(location.href), text, name === "pushState"));
      }
      update();
    };
  }
  window.addEventListener("popstate", update);
}

function holdRequests(): void {
  const addresses = new WeakMap<XMLHttpRequest, string>();
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with their request below
  const { open, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (this: XMLHttpRequest, ...details: unknown[]) {
    addresses.set(this, String(details[1]));
    Reflect.apply(open, this, details);
  };
  XMLHttpRequest.prototype.send = function (this: XMLHttpRequest, body) {
    const url = new URL(addresses.get(this) ?? "", document.baseURI);
    const isAboutMemory = url.pathname.endsWith("/data") && isMemoryTool(url.searchParams.get("tag"));
    if (isAboutMemory) lastQuery = url.searchParams;
    if (isAboutMemory && currentPage !== null && !isStock)
      pendingRequests.push(() => {
        if (this.readyState === XMLHttpRequest.OPENED) send.call(this, body);
      });
    else send.call(this, body);
  };
}

/** Fix XProf's link to the timeline, which omits host, memory space and path prefix. */
function fixTimelineLink(): void {
  const mend = (event: Event) => {
    const target = event.target instanceof Element ? event.target : null;
    const anchor = target?.closest<HTMLAnchorElement>("a[href*=view_memory_allocation_timeline]");
    if (!anchor) return;
    const url = new URL(`data${new URL(anchor.href).search}`, document.baseURI);
    for (const name of ["host", "memory_space"]) url.searchParams.set(name, lastQuery.get(name) ?? "");
    anchor.href = url.href;
  };
  document.addEventListener("click", mend, true);
}

/** Leave an unknown version of XProf unchanged, and add a link to our page. */
function addLink(): void {
  const anchor = document.createElement("a");
  anchor.className = "tb-memplugin-button";
  anchor.href = "memory/index.html";
  anchor.textContent = "tb-memplugin (not tested with this XProf): Memory Viewer";
  document.body.append(anchor);
}

const isTested = document.currentScript?.dataset["tested"] === "True";
const style = document.createElement("style");
style.textContent = STYLE;
document.head.append(style);
if (isTested) {
  followUrl();
  holdRequests();
  stubCharts();
  fixTimelineLink();
  document.addEventListener("DOMContentLoaded", update);
} else {
  document.addEventListener("DOMContentLoaded", addLink);
}
