"""From a pasted out-of-memory error to the program that it names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from support.browser.hosts import Host, open_standalone
from support.browser.pages import new_context
from support.browser.viewer import Viewer, until
from support.servers import DEMO

REFUSED = "v5e_out_of_memory"
TEXT = (DEMO / REFUSED / "compile.oom.txt").read_text()


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Host]:
    shutil.copytree(DEMO / REFUSED, tmp_path / "logs" / REFUSED)
    with open_standalone(tmp_path / "logs", tmp_path) as host:
        yield host


def test_the_page_of_a_pasted_error_leads_to_the_program(standalone: Host, browser: Browser) -> None:
    context = new_context(browser)
    page = context.new_page()
    page.goto(standalone.address({"tab": "overview", "run": REFUSED}))
    viewer = Viewer(page).wait_until_ready()
    assert viewer.get("assumed-capacity").count() == 0, "only memories on the chip have no capacity"
    viewer.get("paste").click()
    viewer.get("paste-text").fill(TEXT)
    viewer.get("paste-read").click()
    viewer.get("paste-open").click()
    until(viewer.state, lambda state: state.get("run", "").startswith("pasted/"), "not its run")
    viewer.wait_until_ready()
    viewer.get("failed-program").get_by_role("button").click()
    state = until(viewer.state, lambda state: state.get("run") == REFUSED, "not the program's run")
    assert (state["tab"], state["module"], state["space"]) == ("memory_viewer", "jit_train_step", "HBM")
    viewer.wait_until_ready()
    context.close()
