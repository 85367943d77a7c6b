"""Time from opening the page, on a server that has read no file, to the first picture of an allocator's timeline.

    python -m benchmarks.first_picture [--allocations 1000000] [--layouts age stacked address] [--rounds 3]

The built page shows a generated profile in headless Chromium without a GPU, with the timeline in the whole window. Each
round starts a new server and a new browser. Beside the picture, the times at which the page had its script, the run's
recordings, the first view and the lifetimes are printed, all since the page was opened.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright

from benchmarks import generate_events
from benchmarks.cold_server import OURS
from benchmarks.timeline_frames import BROWSER, LISTEN, TIMEOUT_SECONDS, WINDOW, served_page, write
from benchmarks.timing import Cost, tree_bytes

ANSWERS = ("index.js", "recordings", "memory_profile", "lifetimes", "rows")
RECEIVED = """
() => Object.fromEntries(performance.getEntriesByType("resource").map(
  ({ name, responseEnd }) => [new URL(name).pathname.split("/").at(-1), responseEnd]))
"""


def measure(folder: Path, layout: str) -> dict[str, float]:
    """Return the seconds until each answer has come, and until the picture is shown."""
    with served_page(folder) as address:
        return open_page(address, layout)


def cost(folder: Path, layout: str) -> Cost:
    """Return the cost of a cold server's first picture. The memory is the server's."""
    started = time.perf_counter()
    with OURS.running(folder) as (client, pid):
        seconds = open_page(f"http://127.0.0.1:{client.connection.port}/", layout)
        return Cost(time.perf_counter() - started, seconds["picture"], tree_bytes(pid), 0)


def open_page(address: str, layout: str) -> dict[str, float]:
    state = f"#full=true&tab=memory_profile&layout={layout}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**BROWSER)
        page = browser.new_page(viewport=WINDOW)
        page.add_init_script(LISTEN)
        began = time.monotonic()
        page.goto(address + state, wait_until="commit")
        while not page.evaluate("window.shown?.length"):
            assert time.monotonic() - began < TIMEOUT_SECONDS, "no image was painted"
            page.wait_for_timeout(20)
        received: dict[str, float] = page.evaluate(RECEIVED)
        seconds = {name: received[name] / 1000 for name in ANSWERS if name in received}
        shown = page.evaluate("shown[0]") / 1000
        assert shown < time.monotonic() - began
        browser.close()
    return {**seconds, "picture": shown}


def report(label: str, rounds: Sequence[dict[str, float]]) -> None:
    names = [name for name in (*ANSWERS, "picture") if all(name in each for each in rounds)]
    middle = {name: median(each[name] for each in rounds) for name in names}
    pictures = [each["picture"] for each in rounds]
    print(f"{label}: {', '.join(f'{name} {seconds:.2f} s' for name, seconds in middle.items())}", end=" ")
    print(f"[{min(pictures):.2f}, {max(pictures):.2f}]", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allocations", type=int, default=1_000_000)
    parser.add_argument("--layouts", nargs="*", default=["age", "stacked", "address"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--logdir", type=Path, help="show this profile, and generate none")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.logdir or Path(made)
        if arguments.logdir is None:
            # An allocation and its free are two events.
            events = 2 * arguments.allocations
            write(generate_events.generate(events, events)[0], folder)
        for layout in arguments.layouts:
            rounds = [measure(folder, layout) for _ in range(arguments.rounds)]
            report(f"{arguments.allocations:,} allocations, layout {layout}", rounds)


if __name__ == "__main__":
    main()
