"""Time from a typed letter to the answer of the timeline's search, in headless Chromium without a GPU.

    python -m benchmarks.timeline_search [--buffers 1000000] [--searches fusion.12 "adam" "^fusion" "layer_3/mlp"]

The built page shows a generated program, whose buffers all have names of their own, with the timeline in the whole
window. Each search is typed letter by letter, ten letters a second. The time of a letter ends when the page shows the
number of its matches; a letter that is followed by the next one before that is not counted. The aim is 0.1 s. The
longest task is the longest time in which the page answers to nothing.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright

from benchmarks.cold_server import OURS
from benchmarks.generate import generate, profile
from benchmarks.timeline_frames import BROWSER, WINDOW, write

READY_SECONDS = 300
PAUSE_MS = 100
SEARCHES = ("fusion.12", "adam", "^fusion", "layer_3/mlp", "no such name")

# Records the time from each input until the number of its matches is shown, and long tasks.
LISTEN = """
() => {
  window.answers = []; window.tasks = [];
  const shown = document.querySelector("[data-testid=timeline-matches]");
  let typed = null;
  document.addEventListener("input", event => { typed = event.timeStamp; }, true);
  new MutationObserver(() => {
    if (shown.getAttribute("aria-busy") === "true") return;
    if (typed !== null) answers.push(performance.now() - typed);
    typed = null;
  }).observe(shown, { attributes: true });
  new PerformanceObserver(list => {
    for (const { duration } of list.getEntries()) tasks.push(duration);
  }).observe({ type: "longtask" });
}
"""


def measure(page: Page, search: str) -> str:
    """Type a search; return its times as text."""
    field = page.get_by_test_id("timeline-search")
    field.fill("")
    page.wait_for_timeout(1000)
    field.focus()
    page.wait_for_timeout(PAUSE_MS)
    page.evaluate("answers.length = tasks.length = 0")
    for letter in search:
        page.keyboard.type(letter)
        page.wait_for_timeout(PAUSE_MS)
    page.wait_for_timeout(1000)
    answers: list[float] = page.evaluate("answers")
    longest: float = page.evaluate("Math.max(0, ...tasks)")
    found = page.get_by_test_id("timeline-matches").inner_text()
    if not answers:
        return f"{search}: {found}, no letter was answered"
    times = f"{median(answers):.0f} ms, at most {max(answers):.0f} ms"
    return f"{search}: {found}; {len(answers)} of {len(search)} letters, {times}, longest task {longest:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", type=int, default=1_000_000)
    parser.add_argument("--searches", nargs="*", default=SEARCHES)
    parser.add_argument("--logdir", type=Path, help="show this profile, and generate none")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.logdir or Path(made)
        if arguments.logdir is None:
            write(profile(generate(arguments.buffers)[0]), folder)
        with OURS.running(folder) as (client, _), sync_playwright() as playwright:
            browser = playwright.chromium.launch(**BROWSER)
            page = browser.new_page(viewport=WINDOW)
            page.goto(f"{client.address}/#full=true&tab=memory_viewer&show=all")
            page.wait_for_selector("html[data-state=ready]", timeout=READY_SECONDS * 1000)
            page.wait_for_timeout(3000)
            page.evaluate(LISTEN)
            for search in arguments.searches:
                print(measure(page, search), flush=True)
            browser.close()


if __name__ == "__main__":
    main()
