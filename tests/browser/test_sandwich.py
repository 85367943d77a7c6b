"""Flame graphs of stacks, with folded root frames and short names, and the sandwich of one function."""

from __future__ import annotations

from support.browser.hosts import in_host
from support.browser.logs import LARGEST, TRAIN
from support.browser.pages import Open
from support.browser.viewer import Viewer, until

PROGRAM = {"tab": "memory_viewer", "run": TRAIN, "module": LARGEST}
LINE = 20  # src/layout/tree/flame.ts: height of a level


def lines_of(viewer: Viewer) -> dict[str, str]:
    """Return the listed functions with their totals."""
    read = """list => Object.fromEntries([...list.querySelectorAll('[data-testid=sandwich-line]')].map(line =>
      [line.children[0].title, line.children[1].title]))"""
    found: dict[str, str] = viewer.get("sandwich-list").evaluate(read)
    return found


@in_host("tensorboard")
def test_common_root_frames_are_one_line_that_a_click_opens(go_to: Open) -> None:
    viewer = go_to(**PROGRAM, chart="flame", by="stack")
    flame = viewer.get("flame-graph")
    flame.scroll_into_view_if_needed()
    folded = viewer.box("flame-graph").height
    flame.locator("canvas").hover(position={"x": 60, "y": LINE * 1.5})
    tooltip = viewer.frame.locator(".tree-canvas .tooltip")
    until(tooltip.inner_text, lambda text: "common frames" in text, "no folded line")
    assert "make_demo.py:190 <module>" in tooltip.inner_text()
    flame.locator("canvas").click(position={"x": 60, "y": LINE * 1.5})
    viewer.wait_for_state(roots="true")
    until(lambda: viewer.box("flame-graph").height, lambda height: height > folded + LINE, "not unfolded")
    flame.locator("canvas").hover(position={"x": 60, "y": LINE * 1.5})
    until(tooltip.inner_text, lambda text: "demo_logdir/make_demo.py:190" in text, "no full path in the tooltip")


@in_host("xprof")
def test_a_sandwich_has_callers_and_callees_of_the_chosen_function(go_to: Open) -> None:
    viewer = go_to(**PROGRAM, chart="sandwich")
    totals = lines_of(viewer)
    layer = "layer (demo_logdir/make_demo.py)"
    assert layer in totals
    viewer.get("sandwich-list").get_by_title(layer, exact=True).click()
    viewer.wait_for_state(around=layer)
    # Both charts have the function at their root, and its total.
    for chart, direction in (("sandwich-callers", "ArrowUp"), ("sandwich-callees", "ArrowDown")):
        node = viewer.get(chart).get_by_role("treeitem")
        label = str(node.get_attribute("aria-label"))
        assert label.startswith("make_demo.py layer, ")
        viewer.get(chart).focus()
        viewer.page.keyboard.press(direction)
        viewer.get(chart).locator("[role=treeitem][aria-level='2']").wait_for(state="attached")
        viewer.page.keyboard.press("Home")
        chosen = viewer.get("sandwich-list").locator("[aria-selected=true]").get_by_role("gridcell").nth(1)
        assert chosen.inner_text().startswith(label.split(", ")[1])
    viewer.get("sandwich-list").get_by_role("grid").focus()
    viewer.page.keyboard.press("ArrowUp")
    until(lambda: viewer.state().get("around"), lambda now: now != layer, "arrows do not choose")
    viewer.get("tree-search").fill("atten")
    until(
        lambda: list(lines_of(viewer)), lambda names: names == [n for n in names if "atten" in n] != [], "not searched"
    )


@in_host("standalone")
def test_a_key_leads_from_a_flame_graph_to_the_sandwich(go_to: Open) -> None:
    viewer = go_to(**PROGRAM, chart="flame", by="stack", roots="true")
    viewer.get("flame-graph").focus()
    viewer.page.keyboard.press("ArrowDown")
    viewer.page.keyboard.press("c")
    viewer.wait_for_state(chart="sandwich", around="<module> (demo_logdir/make_demo.py)")
    charts = viewer.get("sandwich-charts")
    assert charts.get_attribute("data-function") == "<module> (demo_logdir/make_demo.py)"
