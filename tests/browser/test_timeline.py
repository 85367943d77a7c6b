"""The allocation timeline: its own page, zoom and pan by wheel, drag and keys, search, and files."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser
from support.browser.expected import Recording, recording
from support.browser.hosts import Host, in_host
from support.browser.logs import LARGEST
from support.browser.pages import new_context
from support.browser.viewer import Viewer, box_of, until

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def expected(host: Host) -> Recording:
    return recording(host)


@in_host("standalone")
def test_charts_in_the_full_window_can_be_shared(viewer: Viewer, expected: Recording, browser: Browser) -> None:
    viewer.get("timeline-fullscreen").click()
    viewer.wait_for_state(full="true")
    timeline = viewer
    assert timeline.get("headline").count() == 0
    timeline.picture()
    row = expected.uncovered()[3]
    timeline.page.mouse.click(*expected.point(row, timeline.plot()))
    details = timeline.details()
    assert timeline.get("details").get_by_role("heading").first.inner_text() == expected.rows["name"][row]
    timeline.picture()
    # A window of bytes and positions around the block, and a position on the axis below.
    plot = timeline.plot()
    point = plot.at(expected.middle(row)[0] / expected.length, 0.5)
    timeline.page.mouse.move(*point)
    timeline.wheel(-300, "Control")
    timeline.windows()
    timeline.page.mouse.click(plot.left + 0.25 * plot.width, plot.top + plot.height + 8)
    timeline.page.mouse.move(1, 1)
    state = timeline.wait_for_state(selected=str(row), full="true", module=LARGEST)
    until(timeline.state, lambda state: "position" in state and "yzoom" in state, "no position or zoom in the address")
    state, picture = timeline.state(), timeline.picture()
    timeline.page.reload()
    timeline.wait_until_ready()
    assert timeline.details() == details
    timeline.assert_picture(picture)
    assert timeline.state() == state
    other = new_context(browser)
    try:
        page = other.new_page()
        page.goto(timeline.address())
        shared = Viewer(page).wait_until_ready()
        assert shared.details() == details
        shared.assert_picture(picture)
    finally:
        other.close()


def test_reload_in_the_host_gives_the_same_picture(viewer: Viewer, expected: Recording) -> None:
    """In TensorBoard and XProf, users copy the address of the host."""
    row = expected.uncovered()[2]
    viewer.page.mouse.click(*expected.point(row, viewer.plot()))
    details = viewer.details()
    viewer.picture()
    viewer.get("timeline-plot").press("+")
    viewer.page.mouse.move(1, 1)
    until(viewer.state, lambda state: "zoom" in state and state.get("selected") == str(row), "no zoom in the address")
    picture = viewer.picture()
    viewer.page.reload()
    viewer.wait_until_ready()
    assert viewer.details() == details
    viewer.box("timeline-plot")
    viewer.assert_picture(picture)


def under(window: list[float], share: float) -> float:
    return window[0] + share * (window[1] - window[0])


@in_host("tensorboard")
def test_wheel_drag_and_minimap(viewer: Viewer, expected: Recording) -> None:
    mouse, keyboard, plot = viewer.page.mouse, viewer.page.keyboard, viewer.plot()
    full = [0.0, float(expected.length)], [0.0, expected.temporaries_top()]
    assert viewer.windows() == ([], [])
    left, top = plot.at(0.3, 0.4)
    point = round(left), round(top)  # the browser keeps parts of pixels as floats of 32 bits
    mouse.move(*point)
    viewer.wheel(-400, "Control")
    zoom, yzoom = viewer.windows()
    assert not yzoom
    assert zoom[1] - zoom[0] < 0.6 * expected.length
    # The pointer is at a whole pixel.
    assert under(zoom, 0.3) == pytest.approx(under(full[0], 0.3), abs=expected.length / plot.width)
    viewer.wheel(-400, "Alt")
    same, yzoom = viewer.windows()
    assert same == zoom
    assert yzoom[1] - yzoom[0] < 0.6 * full[1][1]
    assert under(yzoom, 0.6) == pytest.approx(under(full[1], 0.6), abs=full[1][1] / plot.height)
    mouse.down()
    mouse.move(point[0] + 100, point[1] + 30, steps=4)
    mouse.up()
    moved, ymoved = viewer.windows()
    scale = (zoom[1] - zoom[0]) / plot.width
    assert moved[0] == pytest.approx(zoom[0] - 100 * scale, abs=0.02)
    assert moved[1] - moved[0] == pytest.approx(zoom[1] - zoom[0], abs=0.02)
    assert ymoved[0] == pytest.approx(yzoom[0] + 30 * (yzoom[1] - yzoom[0]) / plot.height, abs=1)
    assert "selected" not in viewer.state(), "a drag counted as a click"
    across, down = box_of(viewer.get("timeline-minimap").locator(".timeline-window")).at(0.5, 0.5)
    mouse.move(across, down)
    mouse.down()
    mouse.move(across + 50, down, steps=4)
    mouse.up()
    dragged, _ = viewer.windows()
    wide = viewer.box("timeline-minimap").width
    assert dragged[0] == pytest.approx(moved[0] + 50 * expected.length / wide, abs=1)
    assert dragged[1] - dragged[0] == pytest.approx(moved[1] - moved[0], abs=0.02)
    viewer.get("timeline-all").click()
    assert viewer.windows() == ([], [])
    mouse.move(*plot.at(0.25, 0.25))
    keyboard.down("Shift")
    mouse.down()
    mouse.move(*plot.at(0.5, 0.75), steps=4)
    mouse.up()
    keyboard.up("Shift")
    zoom, yzoom = until(viewer.windows, all, "a drag with Shift does not zoom")  # a busy browser hears it late
    assert zoom == pytest.approx([0.25 * expected.length, 0.5 * expected.length], abs=0.02)
    assert yzoom == pytest.approx([0.25 * full[1][1], 0.75 * full[1][1]], abs=2 * full[1][1] / plot.height)


@in_host("xprof")
def test_keys_zoom_and_pan(viewer: Viewer, expected: Recording) -> None:
    plot, length = viewer.get("timeline-plot"), expected.length
    top = expected.temporaries_top()

    def after(*keys: str) -> tuple[list[float], list[float]]:
        for key in keys:
            plot.press(key)
            viewer.rest()  # each key starts from the result of the one before
        return viewer.windows()

    zoom, _ = after("+", "+")
    assert zoom == pytest.approx([length * 3 / 8, length * 5 / 8], abs=0.02)
    zoom, _ = after("ArrowRight")
    assert zoom[0] == pytest.approx(length * (3 / 8 + 1 / 32), abs=0.02)
    zoom, _ = after("Home")
    assert zoom == pytest.approx([0, length / 4], abs=0.02)
    zoom, _ = after("End", "ArrowLeft")
    assert zoom[1] == pytest.approx(length * (1 - 1 / 32), abs=0.02)
    zoom, yzoom = after("-", "Alt++")
    assert zoom[1] - zoom[0] == pytest.approx(length / 2, abs=0.02)
    assert yzoom == pytest.approx([top / 4, top * 3 / 4], abs=0.02)
    _, yzoom = after("ArrowUp")
    assert yzoom[0] == pytest.approx(top * (1 / 4 + 1 / 16), abs=0.02)
    assert after("0") == ([], [])


@in_host("standalone")
def test_search_with_next_and_previous(viewer: Viewer, expected: Recording) -> None:
    rows = expected.rows
    texts = [rows[name] for name in ("name", "op_name", "source", "shape", "op")]
    test = re.compile(r"layer_2\)/attention")
    drawn = [row for row in expected.temporaries() if rows["size"][row] > 0]
    matches = [row for row in drawn if any(test.search(text[row]) for text in texts)]
    matches.sort(key=lambda row: (rows["defined"][row], expected.bottom(row)))
    assert len(matches) > 3
    before = viewer.picture()
    search, count = viewer.get("timeline-search"), viewer.get("timeline-matches")
    search.fill(test.pattern)
    until(count.inner_text, lambda text: text.startswith(f"{len(matches)} found"), "matches")
    assert viewer.picture() != before  # other blocks are dimmed
    assert viewer.get("table-search").input_value() == test.pattern
    matches_text = count.inner_text
    search.press("Enter")
    until(matches_text, lambda text: text.startswith(f"1 of {len(matches)}"), "first match")
    _, yzoom = viewer.windows()
    assert yzoom[0] <= expected.middle(matches[0])[1] <= yzoom[1]
    viewer.get("timeline").get_by_role("button", name="Next match").click()
    until(matches_text, lambda text: text.startswith("2 of"), "second match")
    viewer.get("timeline-plot").press("n")
    until(matches_text, lambda text: text.startswith("3 of"), "third match")
    viewer.get("timeline-plot").press("Shift+N")
    until(matches_text, lambda text: text.startswith("2 of"), "back to the second")
    viewer.get("timeline").get_by_role("button", name="Previous match").click()
    viewer.get("timeline").get_by_role("button", name="Previous match").click()
    until(matches_text, lambda text: text.startswith(f"{len(matches)} of"), "wrapped to the last")
    viewer.get("timeline-plot").press("Enter")
    viewer.wait_for_state(selected=str(matches[-1]))
    search.fill("fusion[(")
    until(matches_text, lambda text: text.startswith("0 found"), "an invalid expression is not searched for as text")
    search.fill("")
    until(matches_text, lambda text: text == "", "no search")


def shapes(svg: Path) -> dict[str, int]:
    """Return the number of blocks of each name in an SVG."""
    titles = [title.text or "" for title in ElementTree.parse(svg).getroot().iter(f"{SVG}title")]
    names = [title.splitlines()[0] for title in titles]
    return {name: names.count(name) for name in names}


@in_host("tensorboard")
def test_files_full_window_and_other_buffers(viewer: Viewer, expected: Recording, tmp_path: Path) -> None:
    svg, more = tmp_path / "timeline.svg", tmp_path / "more.svg"
    viewer.save_picture("allocation-timeline", "svg").save_as(svg)
    names = shapes(svg)
    largest = [expected.rows["name"][row] for row in expected.uncovered()[:20]]
    assert all(name in names for name in largest)
    saved = tmp_path / "timeline.png"
    viewer.save_picture("allocation-timeline", "png").save_as(saved)
    check_png(saved.read_bytes(), at_least=viewer.plot().width)
    before = viewer.picture()
    viewer.get("timeline-regions").select_option("all")
    until(viewer.picture, lambda picture: picture[0] != before[0], "the same blocks")
    viewer.save_picture("allocation-timeline", "svg").save_as(more)
    added = set(shapes(more)) - set(names)
    others = set(expected.rows["name"]) - {expected.rows["name"][row] for row in expected.temporaries()}
    assert len(added & others) > 10
    viewer.wait_for_state(show="all")
    viewer.get("timeline-fullscreen").click()
    until(viewer.get("headline").count, lambda count: count == 0, "the page is still there")
    viewer.wait_for_state(full="true")
    height = viewer.box("timeline-plot").height
    assert height > 300
    viewer.frame.locator("body").press("f")
    until(viewer.get("headline").count, bool, "the page does not come back")
    viewer.wait_for_state(full=None)


def check_png(content: bytes, at_least: float) -> None:
    """Check that a PNG has at least that width and more than one color."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")
    assert width >= at_least
    assert height > 100
    pixels, at = b"", 8
    while at < len(content):
        size, kind = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
        pixels += content[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    # A blank picture has only a few distinct bytes.
    assert len(set(zlib.decompress(pixels))) > 50


@in_host("xprof")
def test_the_panel_shows_the_block_under_the_pointer(viewer: Viewer, expected: Recording) -> None:
    row = expected.uncovered()[0]
    viewer.page.mouse.move(*expected.point(row, viewer.plot()))
    tooltip = viewer.get("under-pointer")
    until(tooltip.count, bool, "nothing under the pointer")
    assert expected.rows["name"][row] in tooltip.inner_text()
    assert expected.rows["shape"][row] in tooltip.inner_text()
    viewer.page.mouse.move(1, 1)
    until(tooltip.count, lambda count: count == 0, "it stays")
