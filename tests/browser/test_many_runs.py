"""The run picker of a logdir with very many runs."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import Page
from support.browser.hosts import open_standalone
from support.browser.viewer import Viewer, until
from support.servers import DEMO

RUNS = 450


def test_the_run_picker_shows_a_page_of_many_runs_and_finds_any(tmp_path: Path, page: Page) -> None:
    profile = DEMO / "oom/plugins/profile/cpu/localhost.xplane.pb"
    for number in range(RUNS):
        session = tmp_path / f"logs/run_{number:03d}/plugins/profile/s"
        session.mkdir(parents=True)
        shutil.copy2(profile, session)
    with open_standalone(tmp_path / "logs", tmp_path) as host:
        page.goto(host.address({"run": "run_217/s"}))
        viewer = Viewer(page).wait_until_ready()
        picker = viewer.get("run-picker")
        picker.click()
        # Equally old runs come last name first, so that this one is the 233rd.
        assert viewer.options().all_inner_texts()[32].startswith("run_217/s")
        assert viewer.options().count() == 200
        assert page.get_by_text("201 to 400 of 450: type to search").count() == 1
        for _ in range(33):
            picker.press("ArrowUp")
        assert viewer.options().all_inner_texts()[199].startswith("run_250/s")
        picker.fill("33 run")
        until(viewer.options().count, lambda count: count == 14, "matches")
        viewer.pick("run-picker", "run_033", "run_033/s")
