"""Frames of the allocation timeline while it is dragged, in headless Chromium without a GPU.

    python -m benchmarks.timeline_frames [--buffers 100000 500000] [--seconds 4]

The built page over a generated profile, the timeline over the whole window, zoomed so that most of it is in sight
and there is room to drag. A frame is a picture put on the screen; its time is the interval to the one before it, and
the painter's own time is what its worker says it took. The target: 60 frames a second at 100,000 buffers, and no
more than 100 ms a frame at 500,000. A browser without a GPU shows at most 60 frames a second.
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

from benchmarks.generate import generate, profile
from benchmarks.timing import python

WINDOW = {"width": 1280, "height": 800}

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


@dataclass(frozen=True, slots=True)
class Frames:
    intervals: list[float]  # milliseconds between pictures
    painting: list[float]  # milliseconds of the painter, per picture
    blocks: int  # in the last picture


def measure(buffers: int, seconds: float, folder: Path) -> Frames:
    """Writes a profile into `folder`, serves it and drags its timeline to and fro."""
    session = folder / "plugins" / "profile" / "generated"
    session.mkdir(parents=True)
    (session / "localhost.xplane.pb").write_bytes(profile(generate(buffers)[0]).SerializeToString())
    command = python("-m", "tb_memplugin.cli", "serve", f"--logdir={folder}", "--port=0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None, "the server did not say where it is"
            return frames_of(address.group(), seconds)
        finally:
            server.terminate()


def frames_of(address: str, seconds: float) -> Frames:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WINDOW["width"], "height": WINDOW["height"]})
        page.add_init_script(LISTEN)
        page.goto(f"{address}#full=true")
        page.wait_for_selector("html[data-state=ready]", timeout=120_000)
        page.wait_for_timeout(1000)
        zoom_in(page)
        page.evaluate("shown.length = painted.length = 0")
        drag(page, seconds)
        shown: list[float] = page.evaluate("shown")
        painted: list[tuple[float, int]] = page.evaluate("painted")
        browser.close()
    intervals = [after - before for before, after in pairwise(shown)]
    return Frames(intervals, [took for took, _ in painted], painted[-1][1])


def zoom_in(page: Page) -> None:
    """One notch of the wheel along both axes: four fifths of each axis stay in sight."""
    page.mouse.move(WINDOW["width"] / 2, WINDOW["height"] / 2)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -60)
    page.keyboard.up("Control")
    page.wait_for_timeout(1000)


def drag(page: Page, seconds: float) -> None:
    middle = WINDOW["width"] / 2
    page.mouse.move(middle, WINDOW["height"] / 2)
    page.mouse.down()
    end = time.monotonic() + seconds
    step = 0
    while time.monotonic() < end:
        step += 1
        # A triangle wave of 100 pixels: there is always room to go on.
        page.mouse.move(middle + abs(step % 100 - 50) - 25, WINDOW["height"] / 2)
    page.mouse.up()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", type=int, nargs="+", default=[100_000, 500_000])
    parser.add_argument("--seconds", type=float, default=4)
    arguments = parser.parse_args()
    for buffers in arguments.buffers:
        with tempfile.TemporaryDirectory() as folder:
            frames = measure(buffers, arguments.seconds, Path(folder))
        print(
            f"  {buffers:>9,} buffers, {frames.blocks:,} in sight: {1000 / median(frames.intervals):.0f} frames"
            f" a second ({median(frames.intervals):.1f} ms, 95% within {p95(frames.intervals):.1f} ms),"
            f" painting {median(frames.painting):.1f} ms (95% within {p95(frames.painting):.1f} ms)"
        )


def p95(milliseconds: list[float]) -> float:
    return quantiles(milliseconds, n=20)[-1]


if __name__ == "__main__":
    main()
