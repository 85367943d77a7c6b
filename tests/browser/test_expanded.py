"""Expanded lines and sort orders of tables and trees, kept in the address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator
from support.browser.hosts import Host, open_demo
from support.browser.pages import Open, load
from support.browser.viewer import Viewer, until

PROGRAM = {"tab": "memory_viewer", "run": "train_step/cpu", "module": "jit_train_step(0)"}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with open_demo(tmp_path_factory.mktemp("kept_open"), "train_step") as host:
        yield host


@pytest.fixture
def open_page(host: Host, tab: Viewer) -> Open:
    return lambda **state: load(tab, host.address({**PROGRAM, **state}))


def reload(viewer: Viewer) -> Viewer:
    viewer.page.reload()
    return viewer.wait_until_ready()


def wait_for_attribute(line: Locator, name: str, value: str) -> None:
    until(lambda: line.get_attribute(name), lambda found: found == value, f"{name} is not {value}")


def test_a_group_stays_open_until_it_is_closed_again(open_page: Open) -> None:
    viewer = open_page(group="role")
    group = viewer.get("group-line").filter(has_text="activation")
    assert group.get_attribute("aria-expanded") == "false"
    group.click()
    wait_for_attribute(group, "aria-expanded", "true")
    opened = until(viewer.state, lambda state: "opened" in state, "no open group in the address")["opened"]
    wait_for_attribute(reload(viewer).get("group-line").filter(has_text="activation"), "aria-expanded", "true")
    assert viewer.state()["opened"] == opened
    viewer.get("group-line").filter(has_text="activation").click()
    viewer.wait_for_state(opened=None)


def test_a_tree_keeps_its_expanded_nodes_and_its_order(open_page: Open) -> None:
    viewer = open_page(chart="tree", by="model")
    tree = viewer.get("tree-table")
    names = tree.get_by_role("button", name="Name", exact=True)
    names.click()
    viewer.wait_for_state(tree_sort="name", sort=None)
    line = tree.get_by_role("row", level=3).filter(has=viewer.get("tree-twist")).first
    node = line.get_attribute("data-node")
    line.get_by_test_id("tree-twist").click()
    opened = until(viewer.state, lambda state: "tree_opened" in state, "no expanded node in the address")["tree_opened"]
    assert int(opened, 36) == int(node or "")
    again = reload(viewer).frame.locator(f"[data-testid=tree-line][data-node='{node}']")
    wait_for_attribute(again, "aria-expanded", "true")
    wait_for_attribute(viewer.get("tree-table").get_by_role("columnheader").first, "aria-sort", "ascending")
    again.get_by_test_id("tree-twist").click()
    viewer.wait_for_state(tree_opened=None)
    viewer.get("tree-table").get_by_role("button", name="Total").click()
    viewer.wait_for_state(tree_sort=None)
    again.get_by_test_id("tree-twist").click()
    viewer.wait_for_state(tree_opened=opened)
    viewer.get("tree-by").select_option("source")  # a tree with other nodes
    viewer.wait_for_state(tree_opened=None, by="source")


def test_selected_kinds_of_change_are_kept(open_page: Open) -> None:
    viewer = open_page(tab="compare", module="")
    viewer.get("change-only_b").click()
    viewer.wait_for_state(kinds="only_b")
    wait_for_attribute(reload(viewer).get("change-only_b"), "aria-pressed", "true")
    viewer.get("change-only_b").click()
    viewer.wait_for_state(kinds=None)
