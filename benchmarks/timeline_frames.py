"""Frames of the allocation timeline while it is dragged and zoomed, in headless Chromium without a GPU.

    python -m benchmarks.timeline_frames [--buffers 100000 500000] [--allocations 1000000] [--seconds 4]
        [--layouts age stacked address]

The built page over a generated profile, of a program or of an allocator's events in each layout, the timeline over the
whole window, zoomed so that most of it is in sight and there is room to drag, across and aslant, and then zoomed to an
eighth and back by the wheel, four in a hundred at a time. A frame is a picture put on the screen; its time is the
interval to the one before it, and the painter's own time is what its worker says it took. The target: 60 frames a
second, which is the most that a browser without a GPU shows.
"""

import argparse
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

from playwright.sync_api import Page, sync_playwright

from benchmarks import generate_events
from benchmarks.generate import generate, profile
from benchmarks.timing import python
from tb_memplugin.protos.xplane_pb2 import XSpace

WINDOW = {"width": 1280, "height": 800}
PATIENCE_SECONDS = 120

# Notes when pictures are put on the canvas of the timeline and how long each took to paint.
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
    """Of one way of moving."""

    intervals: list[float]  # milliseconds between pictures
    painting: list[float]  # milliseconds of the painter, per picture


@dataclass(frozen=True, slots=True)
class Measured:
    first: float  # seconds from the address to the first picture
    blocks: int  # in sight when it is still
    across: Frames
    aslant: Frames
    zoomed: Frames


def measure(space: XSpace, state: str, seconds: float, folder: Path) -> Measured:
    """Writes a profile into `folder`, serves it, and drags its timeline to and fro and zooms it."""
    session = folder / "plugins" / "profile" / "generated"
    session.mkdir(parents=True)
    (session / "localhost.xplane.pb").write_bytes(space.SerializeToString())
    command = python("-m", "tb_memplugin.cli", "serve", f"--logdir={folder}", "--port=0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None, "the server did not say where it is"
            return frames_of(f"{address.group()}#full=true{state}", seconds)
        finally:
            server.terminate()


def frames_of(address: str, seconds: float) -> Measured:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WINDOW["width"], "height": WINDOW["height"]})
        page.add_init_script(LISTEN)
        began = time.monotonic()
        page.goto(address)
        while not page.evaluate("shown.length"):
            assert time.monotonic() - began < PATIENCE_SECONDS, "no picture has come"
            page.wait_for_timeout(20)
        first = time.monotonic() - began
        page.wait_for_timeout(1000)
        zoom_in(page)
        blocks: int = page.evaluate("painted.at(-1)[1]")
        across, aslant = drag(page, seconds, 0), drag(page, seconds, 1)
        measured = Measured(first, blocks, across, aslant, zoom(page, seconds))
        browser.close()
    return measured


def zoom_in(page: Page) -> None:
    """One notch of the wheel along both axes: four fifths of each axis stay in sight."""
    page.mouse.move(WINDOW["width"] / 2, WINDOW["height"] / 2)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -60)
    page.keyboard.up("Control")
    page.wait_for_timeout(1000)


def drag(page: Page, seconds: float, down: int) -> Frames:
    """Across, and as far down as across where `down` is 1."""
    x, y = WINDOW["width"] / 2, WINDOW["height"] / 2
    page.evaluate(FORGET)
    page.mouse.move(x, y)
    page.mouse.down()
    end = time.monotonic() + seconds
    step = 0
    while time.monotonic() < end:
        step += 1
        # A triangle wave of 100 pixels: there is always room to go on.
        off = abs(step % 100 - 50) - 25
        page.mouse.move(x + off, y + off * down)
    frames = noted(page)
    page.mouse.up()
    page.wait_for_timeout(1000)
    return frames


def zoom(page: Page, seconds: float) -> Frames:
    """Along the axis, in and out about the middle, as often as the screen asks: the browser's driver is slower."""
    page.evaluate(FORGET)
    page.evaluate(ZOOM, seconds * 1000)
    return noted(page)


def noted(page: Page) -> Frames:
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


def report(what: str, space: XSpace, state: str, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(space, state, seconds, Path(folder))
    print(f"{what}, {measured.blocks:,} in sight, first picture after {measured.first:.1f} s")
    for way in ("across", "aslant", "zoomed"):
        frames = getattr(measured, way)
        print(
            f"  {way}: {1000 / median(frames.intervals):.0f} frames a second ({median(frames.intervals):.1f} ms, 95%"
            f" within {p95(frames.intervals):.1f} ms), painting {median(frames.painting):.1f} ms"
            f" (95% within {p95(frames.painting):.1f} ms)"
        )


def p95(milliseconds: list[float]) -> float:
    return quantiles(milliseconds, n=20)[-1]


if __name__ == "__main__":
    main()
