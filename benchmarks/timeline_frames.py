"""Frame rate of the allocation timeline while it is dragged and zoomed, in headless Chromium without a GPU.

    python -m benchmarks.timeline_frames [--buffers 100000 500000] [--allocations 1000000] [--seconds 4]
        [--layouts age stacked address]

The built page shows a generated profile, of a program or of an allocator in each layout, with the timeline in the whole
window. It is zoomed so that most of it is visible and there is room to drag; it is dragged horizontally and diagonally,
and then zoomed to an eighth and back by the wheel, 4 % at a time. A frame is an image put on the canvas; its time is
the interval since the previous one, and the painting time is the one that the worker reports. The target is 60 frames
per second, the maximum of a browser without a GPU.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from playwright.sync_api import Page, ViewportSize, sync_playwright

from benchmarks import generate_events
from benchmarks.cold_server import OURS
from benchmarks.generate import generate, profile
from tb_memplugin.protos.xplane_pb2 import XSpace

WINDOW: ViewportSize = {"width": 1280, "height": 800}
BROWSER: dict[str, Any] = {"executable_path": "/usr/bin/chromium", "args": ["--no-sandbox", "--disable-gpu"]}
TIMEOUT_SECONDS = 120

# Records when images are put on the canvas of the timeline, and how long each took to paint.
LISTEN = """
window.shown = []; window.painted = [];
const put = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...image) {
  if (this.canvas.dataset.testid === "timeline-picture") window.shown.push(performance.now());
  return put.apply(this, image);
};
window.Worker = class extends Worker {
  constructor(...parts) {
    super(...parts);
    this.addEventListener("message", ({ data }) => {
      if (data.place === "plot") window.painted.push([data.milliseconds, data.picture.blocks]);
    });
  }
};
"""


# Turns the wheel once in each frame of the screen.
ZOOM = """
milliseconds => new Promise(done => {
  const plot = document.querySelector("[data-testid=timeline-plot]"), box = plot.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true, cancelable: true };
  const end = performance.now() + milliseconds;
  const turn = step => {
    if (performance.now() > end) return done();
    plot.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: step % 104 < 52 ? -20 : 20 }));
    requestAnimationFrame(() => turn(step + 1));
  };
  turn(0);
})
"""

FORGET = "shown.length = painted.length = 0"


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of one kind of motion."""

    intervals: list[float]  # milliseconds between images
    painting: list[float]  # milliseconds of the painter, per image


@dataclass(frozen=True, slots=True)
class TimelineFrames:
    """The frames of one profile and layout."""

    first: float  # seconds from opening the page to the first image
    blocks: int  # visible at rest
    horizontal: Frames
    diagonal: Frames
    zoomed: Frames


def measure(space: XSpace, state: str, seconds: float, folder: Path) -> TimelineFrames:
    """Write a profile into `folder`, serve it, and drag and zoom its timeline."""
    write(space, folder)
    with OURS.running(folder) as (client, _):
        return frames_of(f"{client.address}/#full=true{state}", seconds)


def write(space: XSpace, folder: Path) -> None:
    """Write a profile as the only run of a logdir."""
    session = folder / "plugins" / "profile" / "generated"
    session.mkdir(parents=True)
    (session / "localhost.xplane.pb").write_bytes(space.SerializeToString())


@contextmanager
def opened(address: str) -> Iterator[Page]:
    """Open the page in a browser, and yield it when the timeline has its first image."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**BROWSER)
        page = browser.new_page(viewport=WINDOW)
        page.add_init_script(LISTEN)
        began = time.monotonic()
        page.goto(address, wait_until="commit")
        while not page.evaluate("window.shown?.length"):
            assert time.monotonic() - began < TIMEOUT_SECONDS, "no image was painted"
            page.wait_for_timeout(20)
        yield page
        browser.close()


def first_image(page: Page) -> float:
    """Return the seconds from opening the page to its first image."""
    milliseconds: float = page.evaluate("shown[0]")
    return milliseconds / 1000


def frames_of(address: str, seconds: float) -> TimelineFrames:
    with opened(address) as page:
        first = first_image(page)
        page.wait_for_timeout(1000)
        zoom_in(page)
        blocks: int = page.evaluate("painted.at(-1)[1]")
        horizontal, diagonal = drag(page, seconds, 0), drag(page, seconds, 1)
        return TimelineFrames(first, blocks, horizontal, diagonal, zoom(page, seconds))


def zoom_in(page: Page) -> None:
    """Turn the wheel by one notch along both axes: four fifths of each axis stay visible."""
    page.mouse.move(WINDOW["width"] / 2, WINDOW["height"] / 2)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -60)
    page.keyboard.up("Control")
    page.wait_for_timeout(1000)


def drag(page: Page, seconds: float, down: int) -> Frames:
    """Drag horizontally, or diagonally where `down` is 1."""
    x, y = WINDOW["width"] / 2, WINDOW["height"] / 2
    page.evaluate(FORGET)
    page.mouse.move(x, y)
    page.mouse.down()
    end = time.monotonic() + seconds
    step = 0
    while time.monotonic() < end:
        step += 1
        # A triangle wave of 100 pixels, so that there is always room.
        off = abs(step % 100 - 50) - 25
        page.mouse.move(x + off, y + off * down)
    frames = recorded_frames(page)
    page.mouse.up()
    page.wait_for_timeout(1000)
    return frames


def zoom(page: Page, seconds: float) -> Frames:
    """Zoom along the axis, in and out, once per frame of the screen; events by the browser's driver are slower."""
    page.evaluate(FORGET)
    page.evaluate(ZOOM, seconds * 1000)
    return recorded_frames(page)


def recorded_frames(page: Page) -> Frames:
    shown: list[float] = page.evaluate("shown")
    painted: list[tuple[float, int]] = page.evaluate("painted")
    return Frames([after - before for before, after in pairwise(shown)], [took for took, _ in painted])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", type=int, nargs="*", default=[100_000, 500_000])
    parser.add_argument("--allocations", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--layouts", nargs="*", default=["age", "stacked", "address"])
    arguments = parser.parse_args()
    for buffers in arguments.buffers:
        report(f"{buffers:>9,} buffers", profile(generate(buffers)[0]), "", arguments.seconds)
    for allocations in arguments.allocations:
        # An allocation and its free are two events.
        space, _ = generate_events.generate(2 * allocations, 2 * allocations)
        for layout in arguments.layouts:
            state = f"&tab=memory_profile&layout={layout}"
            report(f"{allocations:>9,} allocations, layout {layout}", space, state, arguments.seconds)


def report(label: str, space: XSpace, state: str, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(space, state, seconds, Path(folder))
    print(f"{label}, {measured.blocks:,} visible, first image after {measured.first:.1f} s")
    for motion in ("horizontal", "diagonal", "zoomed"):
        frames = getattr(measured, motion)
        interval = median(frames.intervals)
        print(
            f"  {motion}: {1000 / interval:.0f} frames per second ({interval:.1f} ms, 95%"
            f" within {p95(frames.intervals):.1f} ms), painting {median(frames.painting):.1f} ms"
            f" (95% within {p95(frames.painting):.1f} ms)"
        )


def p95(milliseconds: list[float]) -> float:
    return quantiles(milliseconds, n=20)[-1]


if __name__ == "__main__":
    main()
