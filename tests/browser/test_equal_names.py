"""A folder of programs whose modules have equal names: Overview, picker and page show the same one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.browser.hosts import Host, open_standalone
from support.browser.pages import load
from support.browser.viewer import Viewer, until
from support.equal_names import size_of, write_programs

from tb_memplugin.sizes import bytes_text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("equal_names")
    write_programs(folder / "logs")
    with open_standalone(folder / "logs", folder) as host:
        yield host


@pytest.mark.parametrize("number", [0, 7, 59])
def test_a_row_opens_the_program_that_it_names(folder: Host, tab: Viewer, number: int) -> None:
    title, size = f"{('jit_train_step', 'jit_eval_step', 'jit_init')[number % 3]} (step_{number:04d})", size_of(number)
    viewer = load(tab, folder.address({"tab": "overview", "run": "flat", "search": f"step_{number:04d}"}))
    row = viewer.get("recording-row").filter(has_text=f"{number:04d}")
    assert bytes_text(size) in row.inner_text()
    row.get_by_role("button").click()
    viewer.wait_for_state(tab="memory_viewer", module=title)
    viewer.wait_until_ready()
    until(lambda: viewer.text("contents"), lambda text: bytes_text(size) in text, "another program")
    picker = viewer.get("module-picker")
    assert picker.get_attribute("title") == title
    assert bytes_text(size) in viewer.frame.locator(".module-picker").inner_text()


def test_the_picker_lists_each_program(folder: Host, tab: Viewer) -> None:
    viewer = load(tab, folder.address({"tab": "memory_viewer", "run": "dump", "module": "jit_init (module 2)"}))
    viewer.get("module-picker").click()
    assert viewer.options().count() == 60


def test_a_link_that_names_only_the_module_asks(folder: Host, tab: Viewer) -> None:
    viewer = load(tab, folder.address({"tab": "memory_viewer", "run": "flat", "module": "jit_train_step"}))
    until(lambda: viewer.text("contents"), lambda text: "20 programs of this run" in text, "no message")
