/**
 * Script that runs in XProf's page, before XProf's code. While Memory Viewer or Memory Profile is the selected tool, it
 * shows our page instead; the Tools list stays, and a button switches to XProf's own view and back.
 */
import {
  dropWaiting,
  lastQuery,
  sendWaiting,
  sidebarLists,
  stubCharts,
  subscribe,
  watchRequests,
} from "./xprof_requests";
import {
  correctUrl,
  hasPlace,
  isSamePage,
  linkToMemory,
  pageUrl,
  readPage,
  withFragment,
  withParameters,
  type XprofPage,
} from "./xprof_url";

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
/** The place that XProf was told last, and the one that it wrote since. */
let written: XprofPage | null = null;
let told: XprofPage | null = null;
let isTelling = false;
/**
 * Whether XProf's own page was used since the place came from our page, a link or the history. Before that, another
 * tool, run or module that XProf writes is a default of its start, which may end after our page has opened the place.
 */
let isUsed = false;
/** A navigation of XProf that was under way may override what it is told; a place that it does not have stays so. */
const MAX_REPEATS = 2;
const REPEAT_AFTER_MS = 300;
const FILL_MS = 1000;
let repeats = 0;
let repeatTimer = 0;

const frame = document.createElement("iframe");
frame.title = "Memory";
const button = document.createElement("button");
button.className = "tb-memplugin-button";
button.dataset["testid"] = "xprof-stock-toggle";
button.onclick = () => {
  isStock = !isStock;
  placeFrame();
};

/** Show our page while XProf's URL names one of our tools. Once it is shown, it follows the fragment by itself. */
function update(): void {
  const place = readPage(address());
  if (place === null) {
    isStock = false;
    dropWaiting();
  } else if (currentPage === null) load(place);
  currentPage = place;
  placeFrame();
}

const address = (): URL => new URL(location.href);
const listedRuns = (): readonly string[] | null => sidebarLists("").runs;

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
  button.textContent = isStock ? "Back to tb-memplugin" : "XProf's view";
  document.body.append(button);
  if (!isStock) return;
  sendWaiting();
  // Charts laid out while hidden have no size yet.
  window.dispatchEvent(new Event("resize"));
}

type Writer = (state: unknown, title: string, url?: string | URL | null) => void;

/** Keep XProf's URL and sidebar, and our page in its frame, at the same place. */
function connect(): void {
  const pushState = history.pushState.bind(history);
  const replaceState = history.replaceState.bind(history);
  const follow =
    (isPush: boolean): Writer =>
    (state, title, url) => {
      const next = new URL(url ?? location.href, document.baseURI);
      const wasShown = currentPage !== null;
      written = readPage(next);
      if (!isUsed && wasShown && written === null) {
        repeatLater();
        return;
      }
      // Told two places at once, XProf pushes the second one again.
      const isNewEntry = isPush && isUsed && (written === null || !isSamePage(written, readPage(address())));
      if (isNewEntry) told = written;
      const write = isNewEntry ? pushState : replaceState;
      write(state, title, correctUrl(address(), next, isNewEntry, listedRuns()));
      update();
      repeatLater();
      // XProf's router ignores this event, and our page reads the fragment.
      if (isNewEntry && wasShown) window.dispatchEvent(new HashChangeEvent("hashchange"));
    };
  history.pushState = follow(true);
  history.replaceState = follow(false);
  const lead =
    (write: Writer): Writer =>
    (state, title, url) => {
      isUsed &&= write !== pushState;
      write(state, title, withParameters(new URL(url ?? location.href, document.baseURI), listedRuns()));
      currentPage = readPage(address());
      tellSidebar();
    };
  window.tbMemplugin = {
    history: {
      get state(): unknown {
        return history.state as unknown;
      },
      pushState: lead(pushState),
      replaceState: lead(replaceState),
    },
    lists: sidebarLists,
    subscribe,
  };
  subscribe(() => tellSidebar());
  // Input in our frame does not arrive here.
  for (const type of ["pointerdown", "keydown", "click"])
    window.addEventListener(type, () => (isUsed = true), { capture: true, passive: true });
  window.addEventListener("popstate", () => {
    if (isTelling) return;
    isUsed = false;
    told = readPage(address());
    // An entry from before our page wrote its place.
    if (currentPage !== null && told !== null && !hasPlace(address()))
      replaceState(history.state, "", withFragment(address()));
    update();
  });
}

/** Let XProf's router read the URL that our page wrote. It replaces this entry, and its sidebar follows. */
function tellSidebar(isFilled = false): void {
  const place = readPage(address());
  // A sidebar without a list of runs has not started. It then reads the URL by itself.
  if (place === null || !hasPlace(address()) || isSamePage(place, told) || listedRuns() === null) return;
  if (!isFilled && place.tool === "memory_viewer" && place.module === "") {
    // Our page names the module as soon as it knows the run's.
    setTimeout(tellSidebar, FILL_MS, true);
    return;
  }
  told = place;
  repeats = 0;
  navigate();
}

function repeatLater(): void {
  clearTimeout(repeatTimer);
  repeatTimer = window.setTimeout(() => {
    const place = readPage(address());
    if (place === null || !isSamePage(place, told) || isSamePage(place, written) || repeats === MAX_REPEATS)
      return;
    repeats++;
    navigate();
  }, REPEAT_AFTER_MS);
}

function navigate(): void {
  written = null;
  isTelling = true;
  window.dispatchEvent(new PopStateEvent("popstate", { state: history.state as unknown }));
  isTelling = false;
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

const { host, tested } = document.currentScript?.dataset ?? {};
const style = document.createElement("style");
style.textContent = STYLE;
document.head.append(style);
if (host === "tensorboard") {
  linkToMemory(button.className);
} else if (tested === "True") {
  connect();
  watchRequests(() => currentPage !== null && !isStock);
  stubCharts();
  fixTimelineLink();
  document.addEventListener("DOMContentLoaded", update);
} else {
  document.addEventListener("DOMContentLoaded", addLink);
}
