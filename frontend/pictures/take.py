"""Screenshots of the page on demo_logdir/ for the README, taken with the Chromium of the browser tests.

Run with `make pictures`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
DEMO = HERE.parent.parent / "demo_logdir"
RUN = "run=train_step/cpu&host=localhost&module=jit_train_step(0)&space=HBM"
VIEWS = {
    "memory_viewer": (f"#{RUN}", 1400, 1180),
    "timeline": (f"#{RUN}&full=true", 1400, 760),
}


@contextmanager
def serve() -> Iterator[str]:
    command = [sys.executable, "-m", "tb_memplugin.cli", "serve", "--logdir", str(DEMO), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as server:
        assert server.stdout is not None
        try:
            yield next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
        finally:
            server.terminate()


def take(page: Page, url: str, name: str) -> None:
    address, width, height = VIEWS[name]
    page.set_viewport_size({"width": width, "height": height})
    page.goto("about:blank")
    page.goto(url + address)
    page.locator("html[data-state=ready]").wait_for()
    if name == "timeline":
        page.locator("[data-testid=timeline-plot]").click(position={"x": 620, "y": 330})
    page.wait_for_timeout(1500)
    page.screenshot(path=HERE / f"{name}.png")


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with serve() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(color_scheme="light")
        for name in VIEWS:
            take(page, url, name)
        browser.close()


if __name__ == "__main__":
    main()
