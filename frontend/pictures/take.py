"""Screenshots of the page for the README and docs/, taken with the Chromium of the browser tests.

Those of the Fleet tab show a generated pod (benchmarks/pods), all others demo_logdir/.

Run with `make pictures`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEMO = ROOT / "demo_logdir"
RUN = "run=v5e_train_step&module=jit_train_step&space=HBM"
VIEWS = {
    "memory_viewer": (f"#{RUN}", 1400, 1180),
    "timeline": (f"#{RUN}&full=true", 1400, 760),
}


REFUSED, MENDED = "v5e_out_of_memory||jit_train_step|HBM", "v5e_mended||jit_train_step|HBM"
PROGRAM = "#tab=memory_viewer&run=v5e_out_of_memory&module=jit_train_step&space=HBM"
# One investigation, from the error to the step that fits: a caption, a state of the page, and the element to scroll to.
STRIP = (
    ("1. The compiler refuses the step. Its dump has the program.", "#tab=snapshots&run=v5e_out_of_memory", None),
    ("2. Where the memory goes, and from which line most of it comes.", PROGRAM, None),
    ("3. Microbatches save most. The change comes as code.", PROGRAM, "advice"),
    ("4. With four microbatches, the same batch fits.", f"#tab=compare&run=v5e_mended&a={REFUSED}&b={MENDED}", None),
)
STRIP_PAGE = """<style>
body { display: grid; grid-template-columns: 1fr 1fr; gap: 14px; margin: 0; padding: 14px; font: 600 15px sans-serif; }
figure { margin: 0 } figcaption { padding: 4px 0 6px } img { width: 100%; border: 1px solid #ccc; border-radius: 4px }
</style>"""
STRIP_SIZE = {"width": 1100, "height": 720}
FAULTS = ("--outliers", "2", "--leaks", "1", "--missing", "6", "--damaged", "2", "--other-programs", "1")
# Pictures of the Fleet tab: options of the pod, a state of the page, and the last element that is shown.
FLEET = {
    "fleet": (("--hosts", "96", "--skew", "4", *FAULTS), "#tab=fleet", "fleet-findings"),
    "fleet_trend": (("--hosts", "2", "--days", "14"), "#tab=fleet&fleet_trend=day", "fleet-trend"),
}


# A job whose memory grows, on the CPU. It saves a snapshot at SIGUSR1.
JOB = """
import sys, time
import jax.numpy as jnp
from tb_memplugin import capture
kept = [jnp.ones(1 << 20)]
with capture.watch(sys.argv[1]) as watched:
    for number in range(10_000):
        watched.step(number)
        step = [jnp.ones(1 << 18) for _ in range(number % 8)]
        if number % 20 == 0:
            kept.append(jnp.ones(1 << 19))
        time.sleep(0.5)
"""
SNAPSHOT_SECONDS = 30, 95  # at most one a minute is saved
JOB_SECONDS = 120


@contextmanager
def serve(logdir: Path = DEMO) -> Iterator[str]:
    command = [sys.executable, "-m", "tb_memplugin.cli", "serve", "--logdir", str(logdir), "--port", "0"]
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


def take_fleet(page: Page, name: str) -> None:
    """Save a picture of the Fleet tab on a generated pod, from the headline or the section's top."""
    options, address, last = FLEET[name]
    with tempfile.TemporaryDirectory() as folder:
        logdir = Path(folder, "logs")
        command = [sys.executable, "-m", "benchmarks.pods", str(logdir), "--megabytes", "0.5", *options]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        with serve(logdir) as url:
            page.set_viewport_size({"width": 1280, "height": 900})
            page.goto(url + address)
            page.locator("html[data-state=ready]").wait_for(timeout=120_000)
            element = page.locator(f"[data-testid={last}]")
            element.wait_for()
            page.wait_for_timeout(5000)
            box = element.bounding_box()
            assert box is not None
            top = 0 if name == "fleet" else box["y"]
            height = box["y"] + box["height"] + 12 - top
            page.screenshot(
                path=HERE / f"{name}.png", full_page=True, clip={"x": 0, "y": top, "width": 1280, "height": height}
            )


def take_strip(page: Page, url: str) -> None:
    """Save the pictures of the investigation, two in a row, each under its caption."""
    figures = []
    for caption, address, element in STRIP:
        page.set_viewport_size(STRIP_SIZE)
        page.goto("about:blank")
        page.goto(url + address)
        page.locator("html[data-state=ready]").wait_for()
        page.wait_for_timeout(1500)
        if element is not None:
            page.locator(f"[data-testid={element}]").evaluate("e => e.scrollIntoView()")
            page.wait_for_timeout(500)
        picture = b64encode(page.screenshot()).decode()
        figures.append(
            f"<figure><figcaption>{caption}</figcaption><img src='data:image/png;base64,{picture}'></figure>"
        )
    page.set_viewport_size({"width": 1400, "height": 1000})
    page.goto("about:blank")
    page.set_content(STRIP_PAGE + "".join(figures))
    page.locator("body").screenshot(path=HERE / "investigation.png")


def take_live(page: Page) -> None:
    """Save the picture of a job that runs, with snapshots as marks on its curve."""
    with tempfile.TemporaryDirectory() as logdir:
        command = [sys.executable, "-c", JOB, logdir]
        with subprocess.Popen(command, env={**os.environ, "JAX_PLATFORMS": "cpu"}) as job:
            try:
                began = time.monotonic()
                for second in SNAPSHOT_SECONDS:
                    time.sleep(max(began + second - time.monotonic(), 0))
                    job.send_signal(signal.SIGUSR1)
                time.sleep(max(began + JOB_SECONDS - time.monotonic(), 0))
                with serve(Path(logdir)) as url:
                    page.set_viewport_size({"width": 1280, "height": 760})
                    page.goto(f"{url}#tab=memory_profile")
                    page.locator("[data-kind=live]").wait_for()
                    page.get_by_test_id("snapshot-mark").last.hover()
                    page.wait_for_timeout(1500)
                    page.screenshot(path=HERE / "live.png")
            finally:
                job.kill()


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with serve() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(color_scheme="light")
        for name in VIEWS:
            take(page, url, name)
        take_strip(page, url)
        for name in FLEET:
            take_fleet(page, name)
        take_live(page)
        browser.close()


if __name__ == "__main__":
    main()
