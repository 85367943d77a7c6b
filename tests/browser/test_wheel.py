"""The wheel over charts: alone it scrolls the page, with Ctrl it zooms. W, A, S and D zoom and pan."""

from __future__ import annotations

import pytest
from support.browser.hosts import in_host
from support.browser.pages import Open
from support.browser.viewer import Viewer, box_of, until

CHARTS = {"usage-chart": "flame", "timeline-plot": "flame", "flame-graph": "flame", "treemap": "treemap"}
# A gesture that began elsewhere stays a scroll: its pause in base/input.ts, and a margin.
PAUSE_MS = 250

# The handlers of a chart are the same in each host; only the frame around the page differs.
each_chart = pytest.mark.parametrize(
    ("host", "testid"),
    [
        ("standalone", "usage-chart"),
        ("standalone", "treemap"),
        ("tensorboard", "timeline-plot"),
        ("tensorboard", "flame-graph"),
        ("xprof", "timeline-plot"),
        ("xprof", "treemap"),
    ],
    indirect=["host"],
    scope="session",
)


def scrolled(viewer: Viewer) -> float:
    return float(viewer.frame.evaluate("scrollY"))


def point_at(viewer: Viewer, testid: str) -> None:
    """Move the pointer over a chart near the top of the window."""
    chart = viewer.get(testid)
    chart.evaluate("chart => scrollTo(0, scrollY + chart.getBoundingClientRect().top - 80)")

    def points() -> bool:
        box = box_of(chart)
        viewer.page.mouse.move(*box.at(0.4, 0.5))
        viewer.page.mouse.move(*box.at(0.4, 0.52))
        viewer.page.wait_for_timeout(PAUSE_MS)
        return box == box_of(chart)

    until(points, bool, "the chart moves on")


@each_chart
def test_the_wheel_scrolls_the_page_over_a_chart_and_zooms_with_ctrl(testid: str, go_to: Open) -> None:
    viewer = go_to(run="train_step/cpu", module="jit_train_step(0)", chart=CHARTS[testid])
    viewer.get(testid).wait_for()
    point_at(viewer, testid)
    zoom = "node" if testid in ("flame-graph", "treemap") else "zoom"
    top = scrolled(viewer)
    viewer.wheel(-60)
    up = until(lambda: scrolled(viewer), lambda now: now < top, "the page does not scroll up")
    viewer.page.wait_for_timeout(PAUSE_MS)
    viewer.wheel(60)
    until(lambda: scrolled(viewer), lambda now: now > up, "the page does not scroll down")
    point_at(viewer, testid)
    assert zoom not in viewer.state()
    before = scrolled(viewer)
    viewer.wheel(-240, "Control")
    until(viewer.state, lambda state: zoom in state, "Ctrl does not zoom")
    # A flame graph is lower when zoomed in, so that the page can end above.
    assert scrolled(viewer) == before or testid == "flame-graph"
    viewer.wheel(2400, "Control")
    viewer.wheel(2400, "Control")
    until(viewer.state, lambda state: zoom not in state, "Ctrl does not zoom out")


@each_chart
def test_letters_zoom_the_chart_under_the_pointer(testid: str, go_to: Open) -> None:
    viewer = go_to(run="train_step/cpu", module="jit_train_step(0)", chart=CHARTS[testid])
    viewer.get(testid).wait_for()
    zoom = "node" if testid in ("flame-graph", "treemap") else "zoom"
    search = viewer.get("timeline-search")
    point_at(viewer, testid)
    search.focus()
    viewer.page.keyboard.type("was")
    viewer.wait_for_state(search="was")
    assert zoom not in viewer.state(), "typing zooms"
    search.fill("")
    search.blur()
    point_at(viewer, testid)
    viewer.page.keyboard.press("w")
    state = until(viewer.state, lambda state: zoom in state, "W does not zoom in")
    if zoom == "zoom":
        for key in "ad":
            viewer.page.keyboard.press(key)
            state = until(viewer.state, state.__ne__, f"{key} does not pan")
    for _ in range(3):
        viewer.page.keyboard.press("s")
        viewer.rest()
    until(viewer.state, lambda state: zoom not in state, "S does not zoom out")


@in_host("xprof")
def test_letters_zoom_the_focused_chart(viewer: Viewer) -> None:
    viewer.get("timeline-plot").focus()
    viewer.page.keyboard.press("w")
    until(viewer.state, lambda state: "zoom" in state, "W does not zoom in")


@in_host("tensorboard")
def test_the_wheel_alone_zooms_the_timeline_of_the_full_window(go_to: Open) -> None:
    viewer = go_to(run="train_step/cpu", module="jit_train_step(0)", full="true")
    plot = viewer.plot()
    viewer.page.mouse.move(*plot.at(0.4, 0.5))
    # A page that the test before has scrolled jumps to its top, which counts as the user's scrolling.
    viewer.page.wait_for_timeout(PAUSE_MS)
    viewer.wheel(-240)
    zoom, yzoom = viewer.windows()
    assert len(zoom) == 2
    assert yzoom == []
    viewer.wheel(-240, "Control")
    assert len(viewer.windows()[1]) == 2
