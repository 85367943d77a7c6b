"""XProf's tab in TensorBoard: its memory tools link to the same place in the tab Memory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Frame, Page
from support.browser.hosts import open_tensorboard
from support.browser.logs import SMALL, TRAIN
from support.browser.pages import new_context
from support.browser.viewer import Viewer, until

pytest.importorskip("xprof")


def frame_of_xprof(page: Page) -> Frame | None:
    page.wait_for_timeout(50)
    return next((frame for frame in page.frames if "/plugin/profile/" in frame.url), None)


def test_memory_viewer_links_to_the_same_program_in_memory_and_other_tools_do_not(
    logs: Path, tmp_path: Path, browser: Browser
) -> None:
    shutil.copytree(logs, tmp_path / "logs")
    with open_tensorboard(tmp_path / "logs", tmp_path) as host:
        page = new_context(browser).new_page()
        page.goto(f"{host.server.url}#profile")
        xprof = until(lambda: frame_of_xprof(page), bool, "XProf's tab")
        assert xprof is not None
        xprof.locator("sidenav").wait_for()
        link = xprof.get_by_test_id("to-memory-tab")
        assert link.count() == 0, "XProf opens its overview"
        xprof.evaluate(
            "query => { history.pushState(null, '', `memory_viewer?${query}`);"
            " dispatchEvent(new PopStateEvent('popstate')); }",
            f"run={TRAIN}&tag=memory_viewer&host=localhost&moduleName={SMALL}",
        )
        link.wait_for()
        link.click()
        viewer = Viewer(page).wait_until_ready()
        state = viewer.wait_for_state(module=SMALL)
        assert (state["tab"], state["run"]) == ("memory_viewer", TRAIN)
        page.context.close()
