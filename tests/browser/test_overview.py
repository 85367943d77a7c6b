"""Overview: every recording of a run, the fullest memory first, each with a link to its tab."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Route
from support.browser.hosts import Host, open_demo
from support.browser.logs import LARGEST, SMALL, TRAIN
from support.browser.pages import Open, new_context
from support.browser.viewer import Viewer, until, until_held

LEAK = "leak/cpu"
MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with open_demo(tmp_path_factory.mktemp("overview"), "leak", "train_step") as host:
        yield host


@pytest.fixture(scope="module")
def shared_page(server: Host, browser: Browser) -> Iterator[Viewer]:
    context = new_context(browser)
    page = context.new_page()
    page.goto(server.address({"tab": "overview", "run": TRAIN}))
    yield Viewer(page).wait_until_ready()
    context.close()


@pytest.fixture
def train(shared_page: Viewer, server: Host) -> Viewer:
    """Return a page freshly opened at the run with two programs."""
    shared_page.page.goto("about:blank")
    shared_page.page.goto(server.address({"tab": "overview", "run": TRAIN}))
    return shared_page.wait_until_ready()


def answer(host: Host, run: str = TRAIN) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(host.server.get(f"{host.api}overview?run={quote(run)}").text)
    return found


def names(viewer: Viewer) -> list[str]:
    return [line["Recording"] for line in lines(viewer)]


def lines(viewer: Viewer) -> list[dict[str, str]]:
    """Return the visible lines of the table, top to bottom: texts by heading."""
    read = """table => {
      const headings = [...table.querySelectorAll('[role=columnheader]')].map(h => h.innerText.replace(/ [▾▴]$/, ''));
      const top = line => new DOMMatrix(getComputedStyle(line).transform).f;
      return [...table.querySelectorAll('.virtual-line')].sort((a, b) => top(a) - top(b)).map(line =>
        Object.fromEntries([...line.querySelectorAll('[role=gridcell]')].map((c, i) => [headings[i], c.innerText])));
    }"""
    found: list[dict[str, str]] = viewer.get("recordings-table").evaluate(read)
    return found


def test_the_page_shows_the_bytes_that_are_read(train: Viewer, server: Host) -> None:
    held: list[Route] = []
    found = [{"read_bytes": MIB, "total_bytes": 3 * MIB, "seconds": 2.2}]
    train.page.route("**/api/recordings?*", lambda route: held.append(route))
    train.page.route("**/api/progress?*", lambda route: route.fulfill(json=found[0]))
    train.page.goto("about:blank")
    train.page.goto(server.address({"tab": "overview", "run": TRAIN}))
    train.get("reading").get_by_text("Reading 1.00 MiB of 3.00 MiB, 2 s").wait_for()
    found[0] = {"read_bytes": 3 * MIB, "total_bytes": 3 * MIB, "seconds": 4.2}
    train.get("reading").get_by_text("Analyzing 3.00 MiB, 4 s").wait_for()
    held[0].continue_()
    train.page.unroute("**/api/recordings?*")
    train.page.unroute("**/api/progress?*")
    train.wait_until_ready()
    assert train.get("reading").count() == 0


def test_rows_are_shown_before_roles_and_parts(train: Viewer, server: Host) -> None:
    held: list[Route] = []
    train.page.route("**/api/overview?*", lambda route: held.append(route))
    try:
        train.page.goto("about:blank")
        train.page.goto(server.address({"tab": "overview", "run": TRAIN}))
        train.get("recording-row").first.wait_for()
        until_held(train.page, held)
        assert {line["Largest role"] for line in lines(train)} == {"…"}
        assert names(train) == [row["title"] for row in answer(server)["rows"]]
        assert train.text("headline") == answer(server)["headline"]
    finally:  # other tests use the page too
        for route in held:
            route.continue_()
        train.page.unroute("**/api/overview?*")
    train.wait_until_ready()
    until(lambda: {line["Largest role"] for line in lines(train)}, lambda roles: "…" not in roles, "no roles")


def test_the_table_shows_the_answer_of_the_server(train: Viewer, server: Host) -> None:
    overview = answer(server)
    assert train.text("headline") == overview["headline"]
    assert names(train) == [row["title"] for row in overview["rows"]] == [LARGEST, SMALL]
    first = lines(train)[0]
    assert first["Peak"] == "756 MiB"
    assert train.text("constant-columns") == "Same in all rows: Memory HBM, Host localhost"
    assert first["Largest part"] == "75% layer_* \u00d74"
    assert not {"Capacity", "Left", "Host"} & first.keys(), "columns without a value in any row"
    [memory] = overview["together"]
    assert memory["sentence"] in train.text("co-residency")


def test_a_line_opens_its_recording_and_back_returns(train: Viewer) -> None:
    train.get("recordings-table").get_by_role("button", name=SMALL).click()
    train.wait_for_state(tab="memory_viewer", module=SMALL, space="HBM")
    until(lambda: train.get("module-picker").input_value(), lambda name: name == SMALL, "not opened")
    train.page.go_back()
    train.wait_for_state(tab="overview", run=TRAIN, module=None)
    until(lambda: train.get("recordings-table").count(), bool, "Back did not return to the overview")


def test_an_allocator_opens_in_memory_profile(train: Viewer, server: Host) -> None:
    train.go(server.address({"tab": "overview", "run": LEAK}))
    assert names(train) == ["cpu:0 live arrays", "jit_train_step(0)"]
    train.get("recording-row").first.click(position={"x": 400, "y": 10})
    train.wait_for_state(tab="memory_profile", space="cpu:0 live arrays")


def test_keys_select_and_open(train: Viewer) -> None:
    grid = train.frame.get_by_role("grid", name="Recordings")
    grid.press("ArrowDown")
    grid.press("ArrowDown")
    chosen = train.frame.locator("[data-testid=recording-row][aria-selected=true]")
    until(lambda: chosen.inner_text(), lambda text: text.startswith(SMALL), "the second is not selected")
    grid.press("ArrowUp")
    grid.press("Enter")
    train.wait_for_state(tab="memory_viewer", module=LARGEST)


def test_search_sort_and_csv(train: Viewer, tmp_path: Path) -> None:
    train.frame.get_by_role("button", name="Peak").click()
    until(lambda: names(train), [LARGEST, SMALL].__eq__, "largest first")
    train.frame.get_by_role("button", name="Peak").click()
    until(lambda: names(train), [SMALL, LARGEST].__eq__, "smallest first")
    train.get("table-search").fill("train_.tep")
    until(lambda: names(train), [LARGEST].__eq__, "not found")
    train.get("table-search").fill("")
    train.get("table-size").fill("<100MiB")
    until(lambda: names(train), [SMALL].__eq__, "not of that size")
    saved = tmp_path / "saved.csv"
    train.download("Save CSV").save_as(saved)
    [row] = csv.DictReader(io.StringIO(saved.read_text(), newline=""))
    assert (row["recording"], row["peak_bytes"], row["capacity_bytes"]) == (SMALL, "96550928", "")


def test_programs_that_share_a_memory_open_too(train: Viewer) -> None:
    train.get("co-residency").get_by_role("button", name=SMALL).click()
    train.wait_for_state(tab="memory_viewer", module=SMALL)


def test_it_is_the_first_tab_of_every_host(go_to: Open, host: Host) -> None:
    viewer = go_to(tab="overview", run=TRAIN)
    assert viewer.text("headline") == answer(host)["headline"]
    assert viewer.frame.get_by_role("tab").first.inner_text() == "Overview"
    viewer.get("recordings-table").get_by_role("button", name=SMALL).click()
    viewer.wait_for_state(module=SMALL)
    until(lambda: viewer.get("module-picker").input_value(), lambda name: name == SMALL, "not opened")
