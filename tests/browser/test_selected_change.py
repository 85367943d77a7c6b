"""The drawer of a comparison: the selected change in A and in B."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.browser.hosts import Host, open_demo
from support.browser.pages import Open, load
from support.browser.viewer import Viewer, until

PROGRAM = "train_step/cpu|localhost|jit_train_step(0)|HBM"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with open_demo(tmp_path_factory.mktemp("selected_change"), "device_profile_leak", "train_step") as host:
        yield host


@pytest.fixture
def open_page(host: Host, tab: Viewer) -> Open:
    return lambda **state: load(tab, host.address(state))


def stack(viewer: Viewer, side: str) -> str:
    """Return the text of one side of the drawer once its call stack has loaded."""
    part = viewer.get(f"change-in-{side}")
    part.get_by_role("heading", name="Stack").wait_for()
    return part.inner_text()


def test_a_row_is_shown_in_a_and_in_b_and_opens_in_its_recording(open_page: Open) -> None:
    viewer = open_page(tab="compare", run="device_profile_leak")
    row = viewer.get("change-row").filter(has_text="anotherfunc")
    row.click()
    assert "39.1 KiB" in stack(viewer, "a") and "anotherfunc" in stack(viewer, "a")
    assert "in 9 buffers" in stack(viewer, "b") and "1.72 MiB" in stack(viewer, "b")
    assert row.get_attribute("aria-selected") == "true"
    name = until(viewer.state, lambda state: "change" in state, "no change in the address")["change"]
    viewer.page.reload()
    viewer.wait_until_ready()
    assert "anotherfunc" in stack(viewer, "b")
    viewer.get("open-in-b").click()
    viewer.wait_for_state(tab="snapshots", host="memory9", selected=name.partition(",")[2])
    viewer.wait_until_ready()
    assert "anotherfunc" in viewer.details()
    viewer.page.go_back()
    viewer.wait_for_state(tab="compare", change=name)
    assert "anotherfunc" in stack(viewer, "b")


def test_arrow_keys_move_between_rows_and_escape_closes(open_page: Open) -> None:
    viewer = open_page(tab="compare", run="train_step/cpu", a=PROGRAM, b=PROGRAM, at_a="0")
    table = viewer.frame.get_by_role("grid", name="Changes")
    table.focus()
    heading = viewer.get("change-details").get_by_role("heading").first
    viewer.page.keyboard.press("ArrowDown")
    title = heading.inner_text()
    assert "Not there." in viewer.text("change-in-a")
    viewer.page.keyboard.press("ArrowDown")
    title = until(heading.inner_text, lambda text: text != title, "the next row is not selected")
    active = viewer.frame.locator(f"[id='{table.get_attribute('aria-activedescendant')}']")
    # The row shows what tells its name apart from others, and the whole name as the cell's title.
    assert active.get_by_title(title, exact=True).count() == 1
    viewer.page.keyboard.press("Escape")
    viewer.get("change-details").wait_for(state="detached")
    viewer.wait_for_state(change=None)


def test_a_step_lists_its_changes(open_page: Open) -> None:
    viewer = open_page(tab="compare", run="train_step/cpu", a=PROGRAM, b=PROGRAM, at_a="0")
    step = viewer.get("waterfall-step").get_by_role("button", name="activation")
    step.focus()
    viewer.page.keyboard.press("Enter")
    viewer.wait_for_state(change="step:activation")
    drawer = viewer.get("change-details")
    assert "+424 MiB" in drawer.inner_text() and "of the whole change" in drawer.inner_text()
    first = viewer.get("step-entries").get_by_role("button").first
    name = first.inner_text()
    first.click()
    stack(viewer, "b")
    assert drawer.get_by_role("heading").first.inner_text() == name
    viewer.get("swap").click()
    until(lambda: viewer.text("change-in-b"), lambda text: "Not there." in text, "A and B are swapped")
