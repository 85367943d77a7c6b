"""Time until the page has drawn the devices of a pod, in headless Chromium without a GPU.

    python -m benchmarks.fleet_tab [--hosts 1024] [--devices 8] [--logdir FOLDER] [--rounds 20]

The built page shows the Fleet tab of a generated pod, whose files the server has read before. `first picture` begins
with the last byte of the server's answer and ends with the frame that has the heat map, so it contains decoding, all
charts and the table. `redraw` is from a click that changes the color of every cell to the frame after it; `range` from
a click on a bar, which dims the cells outside. The aim is 0.1 s for 8,192 devices.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.cold_server import OURS
from benchmarks.pods.pod import Pod
from benchmarks.pods.truth import Faults
from benchmarks.timeline_frames import BROWSER, WINDOW

READY_SECONDS = 900
FAULTS = Faults(outliers=6, missing=3, damaged=3)
# Records when the heat map is in a frame for the first time.
LISTEN = """
(() => {
  const look = () => {
    if (!document.querySelector(".fleet-cells canvas")) return requestAnimationFrame(look);
    const drawn = new MessageChannel();
    drawn.port1.onmessage = () => { window.drawn = performance.now(); };
    requestAnimationFrame(() => drawn.port2.postMessage(null));
  };
  look();
})();
"""
# Returns the time from a click to the frame after it.
CLICK = """
element => new Promise(resolve => {
  const drawn = new MessageChannel(), from = performance.now();
  drawn.port1.onmessage = () => resolve(performance.now() - from);
  element.click();
  requestAnimationFrame(() => requestAnimationFrame(() => drawn.port2.postMessage(null)));
})
"""
BAR = """
element => new Promise(resolve => {
  const drawn = new MessageChannel(), from = performance.now();
  drawn.port1.onmessage = () => resolve(performance.now() - from);
  element.focus();
  element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  requestAnimationFrame(() => requestAnimationFrame(() => drawn.port2.postMessage(null)));
})
"""
ANSWERED = "performance.getEntriesByType('resource').findLast(({ name }) => /api.fleet\\?/.test(name)).responseEnd"


def open_tab(browser: Browser, address: str) -> Page:
    """Open the tab and wait until it is complete."""
    page = browser.new_page(viewport=WINDOW)
    page.add_init_script(LISTEN)
    page.goto(f"{address}#tab=fleet")
    page.wait_for_selector("html[data-state=ready]", timeout=READY_SECONDS * 1000)
    page.wait_for_timeout(500)
    return page


def text(name: str, times: list[float]) -> str:
    return f"{name}: {median(times):.0f} ms [{min(times):.0f}, {max(times):.0f}] of {len(times)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1024)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--logdir", type=Path, help="show this pod, and generate none")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.logdir or Path(made) / "pod"
        if arguments.logdir is None:
            Pod(arguments.hosts, arguments.devices, 0.1, faults=FAULTS).write(folder)
        with OURS.running(folder) as (client, _), sync_playwright() as playwright:
            browser = playwright.chromium.launch(**BROWSER)
            open_tab(browser, f"{client.address}/").close()  # reads the files
            first = []
            for _ in range(arguments.rounds):
                page = open_tab(browser, f"{client.address}/")
                first.append(page.evaluate("drawn") - page.evaluate(ANSWERED))
                page.close()
            page = open_tab(browser, f"{client.address}/")
            print(page.get_by_test_id("headline").inner_text())
            print(text("first picture", first))
            colors = page.get_by_test_id("fleet-color").get_by_role("button")
            redraws = [colors.nth(1 - turn % 2).evaluate(CLICK) for turn in range(arguments.rounds)]
            print(text("redraw", redraws))
            bar = page.get_by_test_id("fleet-bar").first
            print(text("range", [bar.evaluate(BAR) for _ in range(arguments.rounds)]))
            browser.close()


if __name__ == "__main__":
    main()
