"""The page as a person meets it, in whichever frame a host shows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Download, Error, Frame, Locator, Page

# Two cores may be shared with a whole test run: these only end a test that would never end.
PATIENCE_SECONDS = 20
PATIENCE_MS = PATIENCE_SECONDS * 1000
# Of our page in a frame: TensorBoard's for a plugin's module, and ours over XProf's.
FRAMES = ("plugin_entry.html?name=memory", "/memory/index.html")
# src/views/timeline/geometry.ts and the usage chart: what is left of the plot, right of it, and below.
GUTTER_LEFT, GUTTER_RIGHT, AXIS_HEIGHT = 64, 16, 22
# Levels of 255. Skia places the ends of dashes by a cache of its own: 4 were seen, where a shifted label makes 100.
DASH_NOISE = 8

T = TypeVar("T")


def until(read: Callable[[], T], wanted: Callable[[T], bool], what: str) -> T:
    """What `read` gives once it is as wanted."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not wanted(value := read()):
        assert time.monotonic() < deadline, f"{what}: {value!r}"
        time.sleep(0.05)
    return value


@dataclass(frozen=True)
class Box:
    """In CSS pixels of the page."""

    left: float
    top: float
    width: float
    height: float

    def at(self, across: float, down: float) -> tuple[float, float]:
        """A point by shares of width and height."""
        return self.left + across * self.width, self.top + down * self.height


class Viewer:
    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def frame(self) -> Frame:
        """Ours, wherever it is."""
        for frame in self.page.frames:
            if any(mark in frame.url for mark in FRAMES):
                return frame
        return self.page.main_frame

    def wait_until_ready(self, state: str = "ready") -> Viewer:
        """`state` may be "error" too."""

        def read() -> str | None:
            try:
                return str(self.frame.evaluate("document.documentElement.dataset.state"))
            except Error:  # the frame is being loaded, or is gone for a new one
                return None

        until(read, lambda found: found == state, f"{self.page.url} did not become {state}")
        return self

    def go(self, address: str, expected: str = "ready") -> None:
        """To another state of the page as it is, as pasting an address does of which only the fragment is new."""
        self.page.mouse.move(1, 1)
        read = """fragment => new Promise(resolve => {
          if (location.hash === `#${fragment}`) return resolve();
          addEventListener('hashchange', () => setTimeout(resolve), { once: true });
          location.hash = fragment;
        })"""
        self.page.evaluate(read, urlsplit(address).fragment)
        # What is drawn, and said of its state, follows in the next frames.
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
        self.frame.evaluate(frames)
        self.wait_until_ready(expected)

    def get(self, testid: str) -> Locator:
        return self.frame.get_by_test_id(testid)

    def text(self, testid: str) -> str:
        return self.get(testid).inner_text()

    def figures(self) -> dict[str, str]:
        """Exact bytes by key, as the figures' titles say them."""
        cells = self.frame.locator("[data-testid^=figure-]")
        read = "cells => cells.map(c => [c.dataset.testid.slice(7), c.querySelector('dd').title])"
        return dict(cells.evaluate_all(read))

    def pick(self, testid: str, typed: str, expected: str) -> None:
        """Chooses in a picker by typing a part of the name."""
        picker = self.get(testid)
        picker.click()
        picker.fill(typed)
        self.options().first.click()
        until(picker.input_value, lambda value: value == expected, testid)
        self.wait_until_ready()

    def details(self) -> str:
        """The text of the selected buffer's details, once the part that is fetched has come."""
        details = self.get("details")
        until(details.get_by_role("heading", name="Stack").count, bool, "no details, or no stack in them")
        return details.inner_text()

    def options(self) -> Locator:
        """Of the picker that is open; those of closed ones are in the document too."""
        return self.frame.get_by_role("listbox").get_by_role("option")

    # --- what the address says ---

    def address(self) -> str:
        """As the browser shows it at this moment; page.url learns of changes only while it waits for something."""
        return str(self.page.evaluate("location.href"))

    def state(self) -> dict[str, str]:
        """The parts of the address that are state, as they are now or soon will be."""
        parts = [part.partition("=") for part in urlsplit(self.address()).fragment.split("&")]
        return {key: unquote(value) for key, equals, value in parts if equals}

    def wait_for_state(self, **wanted: str | None) -> dict[str, str]:
        return until(
            self.state,
            lambda state: all(state.get(key) == value for key, value in wanted.items()),
            f"the address does not say {wanted}",
        )

    # --- the charts ---

    def plot(self) -> Box:
        """The blocks of the timeline, without gutters and axis."""
        box = self.box("timeline-plot")
        return Box(box.left + GUTTER_LEFT, box.top, box.width - GUTTER_LEFT - GUTTER_RIGHT, box.height - AXIS_HEIGHT)

    def curve(self) -> Box:
        """What uPlot draws into."""
        return box_of(self.get("usage-chart").locator(".u-over"))

    def box(self, testid: str) -> Box:
        return box_of(self.get(testid))

    def rest(self) -> None:
        """Until the address and the timeline have followed all that was done."""
        # What is done takes effect in the next frame, and what that leads to in the one after.
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        moving = """document.documentElement.dataset.address === 'behind'
          || document.querySelector('[data-testid=timeline-picture][aria-busy=true]') !== null"""
        self.frame.evaluate(frames)
        until(lambda: self.frame.evaluate(moving), lambda found: not found, "the page does not come to rest")

    def picture(self) -> tuple[str, str]:
        """The pixels of the timeline's canvases, blocks and what lies over them, once they have come to rest."""
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
        """The same blocks to the pixel, and over them the same marks but for the noise of dashes."""
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
        """(zoom, yzoom) in the address; an empty list where all is shown."""
        self.rest()
        state = self.state()
        zoom, yzoom = state.get("zoom", ""), state.get("yzoom", "")
        return [float(x) for x in zoom.split(",") if x], [float(y) for y in yzoom.split(",") if y]

    def download(self, button: str) -> Download:
        with self.page.expect_download(timeout=PATIENCE_MS) as saved:
            self.frame.get_by_role("button", name=button, exact=True).click()
        return saved.value

    # --- the table ---

    def table(self) -> list[dict[str, str]]:
        """The buffers that the table shows now, top to bottom, by heading; long texts whole."""
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
        rows: list[dict[str, str]] = self.get("buffer-table").evaluate(read)
        return rows


def box_of(locator: Locator) -> Box:
    locator.scroll_into_view_if_needed()
    found: Any = locator.bounding_box()
    assert found is not None
    return Box(found["x"], found["y"], found["width"], found["height"])
