"""Flame graph, treemap and tree table: live bytes at a position by model path, source or role."""

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
from playwright.sync_api import Browser
from support.browser.expected import Recording, recording
from support.browser.hosts import Host, open_standalone
from support.browser.logs import HOSTILE, LARGEST, MARKUP, TRAIN
from support.browser.pages import Open, load, new_context
from support.browser.viewer import Viewer, box_of, until
from support.payload_decoder import decode
from support.servers import DEMO

TIMES = "\N{MULTIPLICATION SIGN}"
LINE = 20  # src/layout/tree/flame.ts: height of a level


@pytest.fixture(scope="module")
def standalone(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("trees")
    shutil.copytree(logs, folder / "logs")
    shutil.copytree(DEMO / "leak", folder / "logs" / "leak")
    with open_standalone(folder / "logs", folder) as host:
        yield host


@pytest.fixture
def trees(standalone: Host, tab: Viewer) -> Viewer:
    return load(tab, standalone.address({"tab": "memory_viewer", "run": TRAIN, "module": LARGEST}))


class Forest:
    """A tree of rows from the API's table: paths of labels, and the rows below each."""

    def __init__(self, host: Host, by: str, *, merge: bool = False) -> None:
        identifier = quote(f"{TRAIN}|localhost|{LARGEST}|HBM")
        _, tables = decode(host.server.get(f"{host.api}tree?id={identifier}&by={by}&merge={int(merge)}").body)
        self.parent: list[int] = tables["tree"]["parent"]
        self.label: list[str] = tables["tree"]["label"]
        self.leaf: list[int] = tables["leaf"]["node"]
        self.expected: Recording = recording(host)

    def path(self, node: int) -> tuple[str, ...]:
        return () if node < 0 else (*self.path(self.parent[node]), self.label[node])

    def weights(self, position: int) -> dict[tuple[str, ...], int]:
        """Return the live bytes of each path that has any, including its children; () is everything."""
        found: dict[tuple[str, ...], int] = {}
        for row in self.expected.live(position):
            path = self.path(self.leaf[row]) or ("no model path",)
            for depth in range(len(path) + 1):
                found[path[:depth]] = found.get(path[:depth], 0) + int(self.expected.rows["charge"][row])
        return found

    def below(self, path: tuple[str, ...]) -> list[int]:
        return [row for row, node in enumerate(self.leaf) if self.path(node)[: len(path)] == path]


def show(viewer: Viewer, chart: str) -> None:
    """Choose a chart and wait until it replaces its placeholder, which has another height."""
    viewer.get("chart").get_by_role("button", name=chart).click()
    viewer.get(chart.lower().replace(" ", "-")).wait_for()


def lines(viewer: Viewer) -> list[dict[str, Any]]:
    """Return the visible lines of the tree table, top to bottom: level, name, exact bytes, number of rows."""
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


def inspect(viewer: Viewer, position: int) -> None:
    for key in ("Home", "End") if position else ("End", "Home"):
        viewer.get("usage-chart").press(key)
    while int(viewer.text("inspected-position")) > position:
        viewer.page.keyboard.press("[")


def test_the_tree_table_adds_up_the_rows_at_every_position(trees: Viewer, standalone: Host) -> None:
    show(trees, "Tree table")
    forest = Forest(standalone, "model")
    seen = set()
    last = forest.expected.length - 1
    for position in (forest.expected.peak, last, last - 1, last - 2):
        if position != forest.expected.peak:
            inspect(trees, position)
        weights = forest.weights(position)
        root = until(lambda: lines(trees)[:1], bool, "an empty tree")[0]
        assert root["bytes"] == exact(weights[()]) == exact(forest.expected.bytes_of(forest.expected.live(position)))
        path: list[str] = []
        for line in lines(trees)[1:]:
            path = [*path[: line["level"] - 2], line["name"]]
            assert line["bytes"] == exact(weights[tuple(path)])
        assert trees.text("live-heading").startswith(trees.text("crumbs").removeprefix("everything").strip())
        seen.add(root["bytes"])
    assert len(seen) > 1


def heaviest(weights: dict[tuple[str, ...], int], below: tuple[str, ...] = ()) -> tuple[str, ...]:
    return max((path for path in weights if path[:-1] == below and path != below), key=lambda path: weights[path])


def test_a_click_zooms_and_the_breadcrumbs_lead_back(trees: Viewer, standalone: Host) -> None:
    show(trees, "Flame graph")
    forest = Forest(standalone, "model")
    weights = forest.weights(forest.expected.peak)
    first = heaviest(weights)
    second = heaviest(weights, first)
    box = box_of(trees.get("flame-graph"))
    # The heaviest node is the leftmost of its level.
    trees.page.mouse.click(box.left + 20, box.top + 1.5 * LINE)
    trees.wait_for_state(node=first[0])
    trees.page.mouse.click(box.left + 20, box.top + 1.5 * LINE)
    trees.wait_for_state(node="/".join(second))
    crumbs = trees.get("crumbs")
    assert [part.strip() for part in crumbs.get_by_role("listitem").all_inner_texts()][:2] == ["everything", first[0]]
    trees.page.reload()
    trees.wait_until_ready()
    until(crumbs.count, bool, "no breadcrumbs after a reload")
    assert second[-1] in crumbs.inner_text()
    crumbs.get_by_role("button", name="everything").click()
    trees.wait_for_state(node=None)


def test_keys_move_zoom_and_return(trees: Viewer, standalone: Host) -> None:
    show(trees, "Flame graph")
    forest = Forest(standalone, "model")
    first = heaviest(forest.weights(forest.expected.peak))
    graph = trees.get("flame-graph")
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
    trees.wait_for_state(node=first[0])
    graph.press("Escape")
    trees.wait_for_state(node=None)


def test_a_search_marks_nodes_and_counts_each_byte_once(trees: Viewer, standalone: Host) -> None:
    show(trees, "Flame graph")
    forest = Forest(standalone, "model")
    live = forest.expected.live(forest.expected.peak)
    trees.get("tree-search").fill("mlp|layer_1")
    matching = [row for row in live if re.search("mlp|layer_1", "\n".join(forest.path(forest.leaf[row])))]
    nodes = [path for path in forest.weights(forest.expected.peak) if re.search("mlp|layer_1", "".join(path[-1:]))]
    size = forest.expected.bytes_of(matching)
    found = until(lambda: trees.text("tree-found"), lambda text: "match" in text, "no sum")
    assert found.endswith(f" in {len(nodes)} nodes match")
    # The text has three digits of the size.
    assert float(found.split()[0]) == pytest.approx(size / 2**20, rel=0.005)


def curve_of(viewer: Viewer) -> str:
    return str(viewer.get("usage-chart").locator("canvas").first.evaluate("canvas => canvas.toDataURL()"))


def test_a_node_filters_every_chart_until_the_filter_is_cleared(trees: Viewer, standalone: Host) -> None:
    forest = Forest(standalone, "model")
    weights = forest.weights(forest.expected.peak)
    first = heaviest(weights)
    everything = trees.picture()
    curve = curve_of(trees)
    heading = trees.text("live-heading")
    show(trees, "Treemap")
    trees.wait_for_state(chart="treemap")
    show(trees, "Flame graph")
    box = box_of(trees.get("flame-graph"))
    trees.page.keyboard.down("Shift")
    trees.page.mouse.click(box.left + 20, box.top + 1.5 * LINE)
    trees.page.keyboard.up("Shift")
    trees.wait_for_state(only=f"model:{first[0]}")
    live = set(forest.expected.live(forest.expected.peak))
    kept = [row for row in forest.below(first) if row in live]
    assert 0 < len(kept) < len(live)
    until(
        lambda: trees.get("buffer-table").get_by_role("status").inner_text(),
        lambda text: text.startswith(f"{len(kept)} of {len(kept)} buffers"),
        "the table has other rows too",
    )
    assert f"{len(kept)} of {len(live)} buffers" in trees.text("live-heading")
    assert trees.picture()[0] != everything[0]
    until(lambda: curve_of(trees), curve.__ne__, "the curve is not filtered")
    # Other trees are filtered too.
    show(trees, "Tree table")
    trees.get("tree-by").select_option("shape")
    root = until(lambda: lines(trees)[:1], bool, "an empty tree")[0]
    assert (root["bytes"], root["rows"]) == (exact(weights[first]), len(kept))
    trees.get("filter-clear").click()
    trees.wait_for_state(only=None)
    assert trees.text("live-heading") == heading
    trees.page.mouse.move(1, 1)
    assert trees.picture()[0] == everything[0]


def test_bottom_up_and_merged_trees_have_the_same_total(trees: Viewer, standalone: Host) -> None:
    show(trees, "Tree table")
    merged = Forest(standalone, "model", merge=True).weights(recording(standalone).peak)
    before = until(lambda: lines(trees)[:1], bool, "an empty tree")
    trees.frame.get_by_label("Merge layers").check()
    names = until(lambda: [line["name"] for line in lines(trees)], lambda found: "layer_*" in found, "none merged")
    assert {name for name in names if "*" in name} <= {path[-1] for path in merged if path}
    assert lines(trees)[:1] == before
    trees.frame.get_by_label("Merge layers").uncheck()
    trees.frame.get_by_label("Bottom-up").check()
    forest = Forest(standalone, "model")
    ends: dict[str, int] = {}
    for row in forest.expected.live(forest.expected.peak):
        end = (forest.path(forest.leaf[row]) or ("no model path",))[-1]
        ends[end] = ends.get(end, 0) + int(forest.expected.rows["charge"][row])
    tops = until(
        lambda: [line for line in lines(trees) if line["level"] == 2],
        lambda found: bool(found) and found[0]["name"] == max(ends, key=lambda end: ends[end]),
        "not bottom-up",
    )
    assert all(line["bytes"] == exact(ends[line["name"]]) for line in tops)
    assert lines(trees)[:1] == before


def test_bytes_times_lifetime(trees: Viewer, standalone: Host) -> None:
    show(trees, "Tree table")
    forest = Forest(standalone, "model")
    rows, length = forest.expected.rows, forest.expected.length
    weights: dict[tuple[str, ...], int] = {}
    for row in forest.expected.live(forest.expected.peak):
        lifetime = min(rows["end"][row], length) - max(rows["start"][row], 0)
        path = forest.path(forest.leaf[row]) or ("no model path",)
        for depth in range(len(path) + 1):
            weights[path[:depth]] = weights.get(path[:depth], 0) + int(rows["charge"][row]) * lifetime
    trees.get("tree-weight").get_by_role("button", name="lifetime").click()
    wanted = f"{weights[()]:,} bytes {TIMES} positions"
    found = until(lambda: lines(trees), lambda found: bool(found) and found[0]["bytes"] == wanted, wanted)
    tops = {line["name"]: line["bytes"] for line in found if line["level"] == 2}
    assert len(tops) > 2
    assert all(size == f"{weights[(name,)]:,} bytes {TIMES} positions" for name, size in tops.items())
    trees.wait_for_state(weight="time")


def test_keys_expand_collapse_and_filter_the_tree_table(trees: Viewer, standalone: Host) -> None:
    show(trees, "Tree table")
    forest = Forest(standalone, "model")
    first = heaviest(forest.weights(forest.expected.peak))
    before = until(lambda: lines(trees), bool, "an empty tree")
    assert before[1]["name"] == first[0]
    grid = trees.get("tree-table").get_by_role("treegrid")
    for key in ("Home", "ArrowDown", "ArrowLeft"):
        grid.press(key)
    after = until(lambda: lines(trees), lambda found: found != before, "it stays open")
    assert (after[1]["name"], after[2]["level"]) == (first[0], 2)
    grid.press("ArrowRight")
    until(lambda: lines(trees), lambda found: found == before, "it stays closed")
    grid.press("o")
    trees.wait_for_state(only=f"model:{first[0]}")
    grid.press("Enter")
    trees.wait_for_state(node=first[0])
    grid.press("Escape")
    trees.wait_for_state(node=None)


def test_a_treemap_has_the_keys_and_clicks_of_a_flame_graph(trees: Viewer, standalone: Host) -> None:
    show(trees, "Treemap")
    first = heaviest(Forest(standalone, "model").weights(recording(standalone).peak))
    treemap = trees.get("treemap")
    treemap.press("ArrowDown")
    item = treemap.get_by_role("treeitem")
    until(lambda: str(item.get_attribute("aria-label")), lambda text: text.startswith(f"{first[0]},"), "not the first")
    # The heading of the heaviest node is below that of "everything", at the left.
    box = box_of(treemap)
    trees.page.mouse.click(box.left + 12, box.top + 17 + 8)
    trees.wait_for_state(node=first[0])


@pytest.mark.parametrize(
    ("host", "chart"),
    [("standalone", "flame-graph"), ("tensorboard", "treemap"), ("xprof", "tree-table")],
    indirect=["host"],
    scope="session",
)
def test_in_every_host_an_address_opens_a_node_of_a_tree(go_to: Open, host: Host, chart: str) -> None:
    name = {"flame-graph": "flame", "treemap": "treemap", "tree-table": "tree"}[chart]
    first = heaviest(Forest(host, "model").weights(recording(host).peak))
    viewer = go_to(run=TRAIN, module=LARGEST, tab="memory_viewer", chart=name, by="model", node=first[0])
    until(viewer.get(chart).count, bool, f"no {chart}")
    assert first[0] in viewer.get("crumbs").get_by_role("listitem").last.inner_text()


def test_the_saved_tree_adds_up(trees: Viewer, standalone: Host, tmp_path: Path) -> None:
    show(trees, "Tree table")
    trees.get("tree-by").select_option("role")
    until(lambda: lines(trees)[:1], bool, "an empty tree")
    saved = trees.download("Save tree as CSV")
    saved.save_as(tmp_path / "tree.csv")
    content = list(csv.DictReader(io.StringIO((tmp_path / "tree.csv").read_text())))
    total = recording(standalone).bytes_of(recording(standalone).live(recording(standalone).peak))
    assert sum(int(line["self_bytes"]) for line in content) == total == int(content[0]["total_bytes"])
    assert sum(int(line["total_bytes"]) for line in content if line["depth"] == "1") == total


def test_other_charts_do_not_move_while_the_position_changes(trees: Viewer) -> None:
    show(trees, "Flame graph")
    top = trees.get("buffer-table").evaluate("table => table.getBoundingClientRect().top + scrollY")
    for _ in range(6):
        before = trees.text("inspected-position")
        trees.page.keyboard.press("[")
        until(lambda: trees.text("inspected-position"), before.__ne__, "it does not move")
        assert trees.get("buffer-table").evaluate("table => table.getBoundingClientRect().top + scrollY") == top


def test_names_that_are_markup_stay_text(standalone: Host, browser: Browser) -> None:
    context = new_context(browser)
    page = context.new_page()
    page.goto(standalone.address({"tab": "memory_viewer", "run": HOSTILE, "chart": "tree", "by": "stack"}))
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


def test_an_allocators_tree_adds_up_to_the_bytes_in_use(standalone: Host, browser: Browser) -> None:
    context = new_context(browser)
    page = context.new_page()
    page.goto(standalone.address({"tab": "memory_profile", "run": "leak/cpu", "chart": "tree"}))
    viewer = Viewer(page).wait_until_ready()
    for key in ("End", "ArrowLeft", "ArrowLeft", "Home"):
        viewer.get("usage-chart").press(key)
        live = viewer.text("live-heading").partition(" in use")[0]
        crumbs = until(lambda: viewer.text("crumbs"), bool, "no breadcrumbs")
        assert crumbs.removeprefix("everything").strip() == live
    assert viewer.get("tree-by").input_value() == "source"
    context.close()
