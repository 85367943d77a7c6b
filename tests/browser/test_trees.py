"""Flame graph, treemap and tree table: what is live at a position, by what it belongs to."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from conftest import new_context
from expected import Recording, recording
from hosts import Host, open_standalone
from logs import HOSTILE, LARGEST, MARKUP, TRAIN
from playwright.sync_api import Browser
from servers import DEMO
from test_payload import decode
from viewer import Viewer, box_of, until

LINE = 20  # src/layout/flame.ts: height of a level


@pytest.fixture(scope="module")
def alone(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("trees")
    shutil.copytree(logs, folder / "logs")
    shutil.copytree(DEMO / "leak", folder / "logs" / "leak")
    with open_standalone(folder / "logs", folder) as host:
        yield host


@pytest.fixture
def viewer(alone: Host, browser: Browser) -> Iterator[Viewer]:
    context = new_context(browser)
    page = context.new_page()
    page.goto(alone.address({"tab": "memory_viewer", "run": TRAIN, "module": LARGEST}))
    yield Viewer(page).wait_until_ready()
    context.close()


class Forest:
    """A tree of rows, from the API's table alone: paths of labels, and the rows below each."""

    def __init__(self, host: Host, by: str, *, merge: bool = False) -> None:
        asked = quote(f"{TRAIN}|localhost|{LARGEST}|HBM")
        _, tables = decode(host.server.get(f"{host.api}tree?id={asked}&by={by}&merge={int(merge)}").body)
        self.parent: list[int] = tables["tree"]["parent"]
        self.label: list[str] = tables["tree"]["label"]
        self.leaf: list[int] = tables["leaf"]["node"]
        self.expected: Recording = recording(host)

    def path(self, node: int) -> tuple[str, ...]:
        return () if node < 0 else (*self.path(self.parent[node]), self.label[node])

    def weights(self, position: int) -> dict[tuple[str, ...], int]:
        """Live bytes at and below each path that has any; () is everything."""
        found: dict[tuple[str, ...], int] = {}
        for row in self.expected.live(position):
            path = self.path(self.leaf[row]) or ("no model path",)
            for depth in range(len(path) + 1):
                found[path[:depth]] = found.get(path[:depth], 0) + int(self.expected.rows["charge"][row])
        return found

    def below(self, path: tuple[str, ...]) -> list[int]:
        return [row for row, node in enumerate(self.leaf) if self.path(node)[: len(path)] == path]


def show(viewer: Viewer, chart: str) -> None:
    viewer.get("chart").get_by_role("button", name=chart).click()


def lines(viewer: Viewer) -> list[dict[str, Any]]:
    """The lines of the tree table in sight, top to bottom: level, name, exact bytes, number of rows."""
    read = """table => [...table.querySelectorAll('.virtual-line')]
      .sort((a, b) => new DOMMatrix(a.style.transform).f - new DOMMatrix(b.style.transform).f)
      .map(line => {
        const cells = [...line.querySelectorAll('[role=gridcell]')];
        return {
          level: Number(line.querySelector('[role=row]').getAttribute('aria-level')),
          name: cells[0].title, bytes: cells[1].title, rows: Number(cells[3].innerText.replaceAll(',', '')),
        };
      })"""
    found: list[dict[str, Any]] = viewer.get("tree-table").evaluate(read)
    return found


def exact(size: int) -> str:
    return f"{size:,} bytes"


def go_to(viewer: Viewer, position: int) -> None:
    for key in ("Home", "End") if position else ("End", "Home"):
        viewer.get("usage-chart").press(key)
    while int(viewer.text("inspected-position")) > position:
        viewer.page.keyboard.press("[")


def test_the_table_weighs_as_the_rows_do_at_every_position(viewer: Viewer, alone: Host) -> None:
    show(viewer, "Tree table")
    forest = Forest(alone, "model")
    seen = set()
    last = forest.expected.length - 1
    for position in (forest.expected.peak, last, last - 1, last - 2):
        if position != forest.expected.peak:
            go_to(viewer, position)
        weights = forest.weights(position)
        root = until(lambda: lines(viewer)[:1], bool, "an empty tree")[0]
        assert root["bytes"] == exact(weights[()]) == exact(forest.expected.bytes_of(forest.expected.live(position)))
        path: list[str] = []
        for line in lines(viewer)[1:]:
            path = [*path[: line["level"] - 2], line["name"]]
            assert line["bytes"] == exact(weights[tuple(path)])
        assert viewer.text("live-heading").startswith(viewer.text("crumbs").removeprefix("everything").strip())
        seen.add(root["bytes"])
    assert len(seen) > 1


def heaviest(weights: dict[tuple[str, ...], int], below: tuple[str, ...] = ()) -> tuple[str, ...]:
    return max((path for path in weights if path[:-1] == below and path != below), key=lambda path: weights[path])


def test_a_click_zooms_and_the_trail_leads_back(viewer: Viewer, alone: Host) -> None:
    show(viewer, "Flame graph")
    forest = Forest(alone, "model")
    weights = forest.weights(forest.expected.peak)
    first = heaviest(weights)
    second = heaviest(weights, first)
    box = box_of(viewer.get("flame-graph"))
    # The heaviest is at the left of its level.
    viewer.page.mouse.click(box.left + 20, box.top + 1.5 * LINE)
    viewer.wait_for_state(node=first[0])
    viewer.page.mouse.click(box.left + 20, box.top + 1.5 * LINE)
    viewer.wait_for_state(node="/".join(second))
    trail = viewer.get("crumbs")
    assert [part.strip() for part in trail.get_by_role("listitem").all_inner_texts()][:2] == ["everything", first[0]]
    viewer.page.reload()
    viewer.wait_until_ready()
    until(trail.count, bool, "no trail after a reload")
    assert second[-1] in trail.inner_text()
    trail.get_by_role("button", name="everything").click()
    viewer.wait_for_state(node=None)


def test_keys_walk_zoom_and_come_back(viewer: Viewer, alone: Host) -> None:
    show(viewer, "Flame graph")
    forest = Forest(alone, "model")
    first = heaviest(forest.weights(forest.expected.peak))
    graph = viewer.get("flame-graph")
    item = graph.get_by_role("treeitem")
    until(item.count, bool, "nothing has the focus")
    graph.press("ArrowDown")
    until(lambda: str(item.get_attribute("aria-label")), lambda text: text.startswith(f"{first[0]},"), "not the first")
    assert item.get_attribute("aria-level") == "2"
    assert item.get_attribute("id") == graph.get_attribute("aria-activedescendant")
    graph.press("ArrowRight")
    until(lambda: str(item.get_attribute("aria-posinset")), lambda text: text == "2", "not the second")
    graph.press("ArrowLeft")
    graph.press("Enter")
    viewer.wait_for_state(node=first[0])
    graph.press("Escape")
    viewer.wait_for_state(node=None)


def test_a_search_marks_and_sums_each_byte_once(viewer: Viewer, alone: Host) -> None:
    show(viewer, "Flame graph")
    forest = Forest(alone, "model")
    live = forest.expected.live(forest.expected.peak)
    viewer.get("tree-search").fill("mlp|layer_1")
    matching = [row for row in live if re.search("mlp|layer_1", "\n".join(forest.path(forest.leaf[row])))]
    nodes = [path for path in forest.weights(forest.expected.peak) if re.search("mlp|layer_1", "".join(path[-1:]))]
    size = forest.expected.bytes_of(matching)
    said = until(lambda: viewer.text("tree-found"), lambda text: "match" in text, "no sum")
    assert said.endswith(f" in {len(nodes)} nodes match")
    # Three digits of it: the table has them all.
    assert float(said.split()[0]) == pytest.approx(size / 2**20, rel=0.005)


def test_a_node_confines_every_chart_until_it_is_let_go(viewer: Viewer, alone: Host) -> None:
    forest = Forest(alone, "model")
    weights = forest.weights(forest.expected.peak)
    first = heaviest(weights)
    everything = viewer.picture()
    heading = viewer.text("live-heading")
    show(viewer, "Treemap")
    viewer.wait_for_state(chart="treemap")
    show(viewer, "Flame graph")
    box = box_of(viewer.get("flame-graph"))
    viewer.page.keyboard.down("Shift")
    viewer.page.mouse.click(box.left + 20, box.top + 1.5 * LINE)
    viewer.page.keyboard.up("Shift")
    viewer.wait_for_state(only=f"model:{first[0]}")
    live = set(forest.expected.live(forest.expected.peak))
    kept = [row for row in forest.below(first) if row in live]
    assert 0 < len(kept) < len(live)
    until(
        lambda: viewer.get("buffer-table").get_by_role("status").inner_text(),
        lambda text: text.startswith(f"{len(kept)} of {len(kept)} buffers"),
        "the table has others too",
    )
    assert f"{len(kept)} of {len(live)} buffers" in viewer.text("live-heading")
    assert viewer.picture()[0] != everything[0]
    # Other trees are of these rows too.
    show(viewer, "Tree table")
    viewer.get("tree-by").select_option("shape")
    root = until(lambda: lines(viewer)[:1], bool, "an empty tree")[0]
    assert (root["bytes"], root["rows"]) == (exact(weights[first]), len(kept))
    viewer.get("only-clear").click()
    viewer.wait_for_state(only=None)
    assert viewer.text("live-heading") == heading
    viewer.page.mouse.move(1, 1)
    assert viewer.picture()[0] == everything[0]


def test_bottom_up_and_merged_weigh_the_same(viewer: Viewer, alone: Host) -> None:
    show(viewer, "Tree table")
    merged = Forest(alone, "model", merge=True).weights(recording(alone).peak)
    before = until(lambda: lines(viewer)[:1], bool, "an empty tree")
    viewer.frame.get_by_label("Merge layers").check()
    names = until(lambda: [line["name"] for line in lines(viewer)], lambda found: "layer_*" in found, "none merged")
    assert {name for name in names if "*" in name} <= {path[-1] for path in merged if path}
    assert lines(viewer)[:1] == before
    viewer.frame.get_by_label("Merge layers").uncheck()
    viewer.frame.get_by_label("Bottom-up").check()
    forest = Forest(alone, "model")
    ends: dict[str, int] = {}
    for row in forest.expected.live(forest.expected.peak):
        end = (forest.path(forest.leaf[row]) or ("no model path",))[-1]
        ends[end] = ends.get(end, 0) + int(forest.expected.rows["charge"][row])
    tops = until(
        lambda: [line for line in lines(viewer) if line["level"] == 2],
        lambda found: bool(found) and found[0]["name"] == max(ends, key=lambda end: ends[end]),
        "not from the ends",
    )
    assert all(line["bytes"] == exact(ends[line["name"]]) for line in tops)
    assert lines(viewer)[:1] == before


def test_the_saved_tree_adds_up(viewer: Viewer, alone: Host, tmp_path: Path) -> None:
    show(viewer, "Tree table")
    viewer.get("tree-by").select_option("role")
    until(lambda: lines(viewer)[:1], bool, "an empty tree")
    saved = viewer.download("Save tree as CSV")
    saved.save_as(tmp_path / "tree.csv")
    content = list(csv.DictReader(io.StringIO((tmp_path / "tree.csv").read_text())))
    total = recording(alone).bytes_of(recording(alone).live(recording(alone).peak))
    assert sum(int(line["self_bytes"]) for line in content) == total == int(content[0]["total_bytes"])
    assert sum(int(line["total_bytes"]) for line in content if line["depth"] == "1") == total


def test_every_other_chart_keeps_its_place_while_one_steps(viewer: Viewer) -> None:
    show(viewer, "Flame graph")
    top = viewer.get("buffer-table").evaluate("table => table.getBoundingClientRect().top + scrollY")
    for _ in range(6):
        before = viewer.text("inspected-position")
        viewer.page.keyboard.press("[")
        until(lambda: viewer.text("inspected-position"), before.__ne__, "it does not move")
        assert viewer.get("buffer-table").evaluate("table => table.getBoundingClientRect().top + scrollY") == top


def test_names_that_are_markup_stay_text(alone: Host, browser: Browser) -> None:
    context = new_context(browser)
    page = context.new_page()
    page.goto(alone.address({"tab": "memory_viewer", "run": HOSTILE, "chart": "tree", "by": "stack"}))
    viewer = Viewer(page).wait_until_ready()
    names = until(lambda: [line["name"] for line in lines(viewer)], lambda found: len(found) > 2, "an empty tree")
    assert any(MARKUP in name for name in names)
    show(viewer, "Flame graph")
    box = box_of(viewer.get("flame-graph"))
    page.mouse.move(box.left + 20, box.top + 1.5 * LINE)
    tooltip = viewer.frame.locator(".tree-canvas .tooltip")
    until(tooltip.count, bool, "no tooltip")
    assert page.evaluate("window.pwned") is None
    context.close()


def test_an_allocators_tree_is_what_is_in_use(alone: Host, browser: Browser) -> None:
    context = new_context(browser)
    page = context.new_page()
    page.goto(alone.address({"tab": "memory_profile", "run": "leak/cpu", "chart": "tree"}))
    viewer = Viewer(page).wait_until_ready()
    for key in ("End", "ArrowLeft", "ArrowLeft", "Home"):
        viewer.get("usage-chart").press(key)
        live = viewer.text("live-heading").partition(" in use")[0]
        crumbs = until(lambda: viewer.text("crumbs"), bool, "no trail")
        assert crumbs.removeprefix("everything").strip() == live
    assert viewer.get("tree-by").input_value() == "source"
    context.close()
