"""The page under test, in the frame where its host shows it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Download, Error, Frame, Locator, Page

# Generous, because a test run may share its cores: they only end tests that would wait forever.
PATIENCE_SECONDS = 60
PATIENCE_MS = PATIENCE_SECONDS * 1000
# URLs of our page in a frame: of a TensorBoard plugin, and in XProf.
FRAMES = ("plugin_entry.html?name=memory", "/memory/index.html")
# Margins of the plots in CSS pixels, as in src/views/timeline/drawing/scene.ts and the usage chart.
GUTTER_LEFT, GUTTER_RIGHT, AXIS_HEIGHT = 74, 16, 36
# Levels of 255. Skia caches the ends of dashes, which changed pixels by up to 4; a shifted label changes them by 100.
DASH_NOISE = 8

# Elements of the tabs below the charts.
BELOW = {
    **dict.fromkeys(("advice", "advice-piece", "advice-rows", "copy-change"), "advice"),
    **dict.fromkeys(("chart", "live-heading", "flame-graph", "treemap", "sandwich", "tree-table"), "breakdown"),
    **dict.fromkeys(("sandwich-list", "sandwich-callers", "sandwich-callees", "crumbs"), "breakdown"),
    **dict.fromkeys(("address-map", "tree-search", "tree-canvas", "classification"), "breakdown"),
    **dict.fromkeys(("buffer-table", "buffer-row", "group-line", "table-search", "table-group"), "buffers"),
    "kernels": "kernels",
    "growth": "growth",
    "more-findings": "growth",
    "executions": "programs",
    "stack-of-program": "programs",
}
# Tabs that are there once it is known that they have contents.
LATE_TABS = ("kernels", "growth", "programs")

# In messages of errors, where a document or a frame is replaced.
MOVING = ("Execution context was destroyed", "Frame was detached")

T = TypeVar("T")


def until(read: Callable[[], T], wanted: Callable[[T], bool], what: str) -> T:
    """Call `read` until `wanted` accepts its value, and return it. Fail with `what` after PATIENCE_SECONDS.

    What cannot be read while the page navigates, or while its host replaces the frame, is read again.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if wanted(value := read()):
                return value
            said = repr(value)
        except Error as error:
            said = str(error)
            if not any(cause in said for cause in MOVING):
                raise
        assert time.monotonic() < deadline, f"{what}: {said}"
        time.sleep(0.05)


def until_held(page: Page, held: Sequence[object], count: int = 1) -> None:
    """Wait until a route has held back so many requests. Playwright calls routes only while it waits for something."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(held) < count:
        assert time.monotonic() < deadline, f"{len(held)} of {count} requests"
        page.wait_for_timeout(20)


@dataclass(frozen=True)
class Box:
    """A rectangle in CSS pixels of the page."""

    left: float
    top: float
    width: float
    height: float

    def at(self, across: float, down: float) -> tuple[float, float]:
        """Return the point at these shares of width and height."""
        return self.left + across * self.width, self.top + down * self.height


class Viewer:
    def __init__(self, page: Page) -> None:
        self.page = page
        self._is_framed = False

    @property
    def frame(self) -> Frame:
        """Return the frame that contains our page. A host that replaces the frame has none for a moment."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = [frame for frame in self.page.frames if any(mark in frame.url for mark in FRAMES)]
            self._is_framed = self._is_framed or bool(found)
            if not self._is_framed:
                return self.page.main_frame
            if found:
                return found[0]
            assert time.monotonic() < deadline, f"no frame of ours in {self.page.url}"
            self.page.wait_for_timeout(20)

    def wait_until_ready(self, state: str = "ready") -> Viewer:
        """Wait until the page is in a state: "ready" or "error"."""

        def read() -> str | None:
            try:
                return str(self.frame.evaluate("document.documentElement.dataset.state"))
            except Error:  # the frame is loading, or was replaced
                return None

        until(read, lambda found: found == state, f"{self.page.url} did not become {state}")
        return self

    def go(self, address: str, expected: str = "ready") -> None:
        """Change the fragment of the page's URL to that of `address`, without loading the page again."""
        self.page.mouse.move(1, 1)
        read = """fragment => new Promise(resolve => {
          if (location.hash === `#${fragment}`) return resolve();
          addEventListener('hashchange', () => setTimeout(resolve), { once: true });
          location.hash = fragment;
        })"""
        self.page.evaluate(read, urlsplit(address).fragment)
        # The page draws, and sets its data-state, in the next frames.
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
        self.frame.evaluate(frames)
        self.wait_until_ready(expected)

    def get(self, testid: str) -> Locator:
        """Return an element; one of a tab below the charts after the tab was opened."""
        if (tab := BELOW.get(testid)) is not None:
            button = self.frame.get_by_test_id(f"below-{tab}")
            if tab in LATE_TABS:
                button.wait_for()
            if button.count() and button.get_attribute("aria-selected") != "true":
                button.click()
        return self.frame.get_by_test_id(testid)

    def text(self, testid: str) -> str:
        return self.get(testid).inner_text()

    def figures(self) -> dict[str, str]:
        """Return the exact bytes in the figures' titles, by key."""
        cells = self.frame.locator("[data-testid^=figure-]")
        read = "cells => cells.map(c => [c.dataset.testid.slice(7), c.querySelector('dd').title])"
        return dict(cells.evaluate_all(read))

    def pick(self, testid: str, typed: str, expected: str) -> None:
        """Choose an option of a picker by typing a part of its name."""
        picker = self.get(testid)
        picker.click()
        picker.fill(typed)
        self.options().first.click()
        until(picker.input_value, lambda value: value == expected, testid)
        self.wait_until_ready()

    def details(self) -> str:
        """Return the text of the selected buffer's details once its call stack has loaded, without code of frames."""
        details = self.get("details")
        until(details.get_by_role("heading", name="Stack").count, bool, "no details, or no stack in them")
        until(details.locator("section[aria-busy=true]").count, lambda busy: busy == 0, "no code of frames")
        code: list[str] = details.get_by_test_id("frame-code").all_inner_texts()
        text = details.inner_text()
        for each in code:
            text = text.replace(each, "")
        return re.sub(r"\n+", "\n", re.sub("[▾▸] ", "", text))

    def options(self) -> Locator:
        """Return the options of the open picker; the document contains those of closed pickers too."""
        return self.frame.get_by_role("listbox").get_by_role("option")

    # --- the address ---

    def address(self) -> str:
        """Return the current URL. page.url is only updated while Playwright waits for something."""
        return str(self.page.evaluate("location.href"))

    def state(self) -> dict[str, str]:
        """Return the page state in the address. Recent changes may still be missing."""
        parts = [part.partition("=") for part in urlsplit(self.address()).fragment.split("&")]
        return {key: unquote(value) for key, equals, value in parts if equals}

    def wait_for_state(self, **wanted: str | None) -> dict[str, str]:
        return until(
            self.state,
            lambda state: all(state.get(key) == value for key, value in wanted.items()),
            f"the address does not have {wanted}",
        )

    # --- the charts ---

    def plot(self) -> Box:
        """Return the area of the timeline's blocks, without gutters and axis."""
        box = self.box("timeline-plot")
        # The page draws in whole pixels.
        width, height = round(box.width), round(box.height)
        return Box(box.left + GUTTER_LEFT, box.top, width - GUTTER_LEFT - GUTTER_RIGHT, height - AXIS_HEIGHT)

    def curve(self) -> Box:
        """Return the area in which uPlot draws."""
        return box_of(self.get("usage-chart").locator(".u-over"))

    def box(self, testid: str) -> Box:
        return box_of(self.get(testid))

    def rest(self) -> None:
        """Wait until the address and the timeline reflect all input."""
        # Input takes effect in the next frame, and its consequences in the one after.
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        moving = """document.documentElement.dataset.address === 'behind'
          || document.querySelector('[data-testid=timeline-picture][aria-busy=true]') !== null"""
        self.frame.evaluate(frames)
        until(lambda: self.frame.evaluate(moving), lambda found: not found, "the page does not come to rest")

    def picture(self) -> tuple[str, str]:
        """Return the timeline's canvases, blocks and overlay, as data URLs once they no longer change."""
        read = """() => ['timeline-picture', 'timeline-overlay'].map(id => {
          const canvas = document.querySelector(`[data-testid=${id}]`);
          return canvas && canvas.width > 300 ? canvas.toDataURL() : '';
        })"""
        last: list[str] = []

        def at_rest() -> bool:
            nonlocal last
            before = last
            self.rest()
            last = self.frame.evaluate(read)
            return before == last and all(last)

        until(at_rest, bool, "the timeline is not drawn")
        return last[0], last[1]

    def assert_picture(self, before: tuple[str, str]) -> None:
        """Assert that the blocks are the same to the pixel, and the overlay except for the noise of dashes."""
        blocks, marks = self.picture()
        assert blocks == before[0]
        read = """async pictures => {
          const pixels = async url => {
            const image = new Image();
            image.src = url;
            await image.decode();
            const canvas = new OffscreenCanvas(image.width, image.height);
            const context = canvas.getContext('2d');
            context.fillStyle = '#fff';
            context.fillRect(0, 0, image.width, image.height);
            context.drawImage(image, 0, 0);
            return context.getImageData(0, 0, image.width, image.height).data;
          };
          const [a, b] = [await pixels(pictures[0]), await pixels(pictures[1])];
          if (a.length !== b.length) return 255;
          return a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);
        }"""
        assert self.frame.evaluate(read, [before[1], marks]) <= DASH_NOISE

    def windows(self) -> tuple[list[float], list[float]]:
        """Return (zoom, yzoom) of the address; empty lists where the full range is shown."""
        self.rest()
        state = self.state()
        zoom, yzoom = state.get("zoom", ""), state.get("yzoom", "")
        return [float(x) for x in zoom.split(",") if x], [float(y) for y in yzoom.split(",") if y]

    def wheel(self, by: float, *keys: str) -> None:
        """Turn the wheel at the pointer, which is over our page, while these keys are down."""
        listen = "addEventListener('wheel', () => { window.turned = true; }, { capture: true, once: true })"
        self.frame.evaluate(f"window.turned = false; {listen}")
        for key in keys:
            self.page.keyboard.down(key)
        self.page.mouse.wheel(0, by)
        # Playwright does not wait for the event, which a busy browser sends late, also when the keys are up.
        until(lambda: self.frame.evaluate("window.turned"), bool, "the page got no event of the wheel")
        self.rest()
        for key in keys:
            self.page.keyboard.up(key)

    def download(self, button: str) -> Download:
        with self.page.expect_download(timeout=PATIENCE_MS) as saved:
            self.frame.get_by_role("button", name=button, exact=True).click()
        return saved.value

    def save_picture(self, chart: str, ending: str) -> Download:
        """Save a chart, such as `usage-chart`, as `svg` or `png`."""
        self.get("share").click()
        with self.page.expect_download(timeout=PATIENCE_MS) as saved:
            self.get(f"save-{chart}-{ending}").click()
        self.frame.locator("body").press("Escape")
        return saved.value

    def assert_full_window(self, testid: str) -> None:
        """Assert that the key f over a picture makes it grow and fills the window with it, until Escape."""
        before = self.box(testid)
        filled = self.frame.locator(".in-full-window").filter(has=self.frame.get_by_test_id(testid))
        self.get(testid).hover()
        self.page.keyboard.press("f")
        filled.wait_for()
        until(lambda: self.box(testid), lambda box: box.width * box.height > before.width * before.height, testid)
        window = self.frame.evaluate("[0, 0, innerWidth, innerHeight]")
        shown = filled.evaluate("e => (b => [b.left, b.top, b.width, b.height])(e.getBoundingClientRect())")
        assert shown == window
        assert "full" not in self.state(), "the timeline's own full window"
        self.page.keyboard.press("Escape")
        filled.wait_for(state="detached")
        until(lambda: self.box(testid).width, lambda width: width == before.width, "still in the full window")

    def headline(self) -> str:
        """Return the verdict as a line, without the best change, which comes later."""
        spans = self.get("headline").locator(":scope > span").all_text_contents()
        return " \N{MIDDLE DOT} ".join(span for span in spans if not span.startswith(("best: ", "fits with: ")))

    # --- the table ---

    def table(self) -> list[dict[str, str]]:
        """Return the visible lines of the buffer table, top to bottom: full texts by heading. Ungroup them first."""
        read = """table => {
          const headings = [...table.querySelectorAll('[role=columnheader]')].map(h => h.innerText.trim());
          const lines = [...table.querySelectorAll('.virtual-line')];
          const top = line => new DOMMatrix(getComputedStyle(line).transform).f;
          return lines.sort((a, b) => top(a) - top(b)).flatMap(line => {
            const cells = [...line.querySelectorAll('[role=gridcell]')];
            if (cells.length === 0) return [];
            return [Object.fromEntries(cells.map((cell, i) => [
              headings[i].replace(/ [▾▴]$/, ''), (cell.querySelector('[title]')?.title ?? cell.innerText).trim(),
            ]))];
          });
        }"""
        table = self.get("buffer-table")
        if not table.get_by_test_id("buffer-row").count():
            self.get("table-group").select_option("none")
        rows: list[dict[str, str]] = table.evaluate(read)
        return rows


def box_of(locator: Locator) -> Box:
    locator.scroll_into_view_if_needed()
    found: Any = locator.bounding_box()
    assert found is not None
    return Box(found["x"], found["y"], found["width"], found["height"])
