"""The page and explanations in a real Jupyter server, which the browser reaches through the server's proxy."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Browser, Page, expect
from support.servers import BIN, DEMO, REPOSITORY, Server, free_port, running

CELLS = ["%load_ext tb_memplugin", f"%memory {DEMO} 600"]
METADATA = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
READY_MS = 300_000


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("jupyter")
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    (folder / "memory.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=METADATA)))
    port = free_port()
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"),
        *("--IdentityProvider.token=", "--ServerApp.base_url=/user/me", f"--ServerApp.root_dir={folder}"),
        *(
            "--ServerApp.password=",
            "--LabApp.news_url=None",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ),
    ]
    environment = {
        "PATH": f"{BIN}:/usr/bin:/bin",
        "PYTHONPATH": str(REPOSITORY),
        **{f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")},
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
    }
    with running(command, port, folder, "user/me/api", environment) as server:
        yield server


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    yield context.new_page()
    context.close()


def test_the_page_is_in_an_output(jupyter: Server, page: Page) -> None:
    page.goto(f"{jupyter.url}user/me/lab/tree/memory.ipynb")
    page.locator(".jp-Notebook").wait_for(timeout=READY_MS)
    # Jupyter asks for a kernel where cells are run before theirs has started.
    expect(page.get_by_text("| Idle")).to_be_visible(timeout=READY_MS)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    frame = page.frame_locator("iframe[title=Memory]")
    expect(frame.get_by_test_id("module-picker")).to_have_value(re.compile("jit_train_step"), timeout=READY_MS)
    expect(frame.get_by_test_id("headline")).to_contain_text("GiB", timeout=READY_MS)
    assert "/user/me/proxy/" in next(each.url for each in page.frames if each is not page.main_frame)
    assert "#" not in page.url  # the state of the page stays in its frame
