"""Live rows: a range of the axis for charts and table, the full window, and steps of the address map."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator

import pytest
from support.browser.expected import recording
from support.browser.hosts import Host, open_standalone
from support.browser.logs import LARGEST, TRAIN
from support.browser.pages import Open, load
from support.browser.viewer import Viewer, until
from support.servers import DEMO
from support.torch_training import Training

PROGRAM = {"tab": "memory_viewer", "run": TRAIN, "module": LARGEST}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("live")
    logs = folder / "logs"
    shutil.copytree(DEMO / "train_step", logs / "train_step")
    (logs / "torch").mkdir()
    (logs / "torch" / "rank0.pickle").write_bytes(pickle.dumps(Training(6, clears=False).snapshot()))
    with open_standalone(logs, folder) as host:
        yield host


@pytest.fixture
def at(demo: Host, tab: Viewer) -> Open:
    return lambda **state: load(tab, demo.address(state))


def test_a_range_of_the_axis_restricts_charts_and_table_until_it_is_cleared(demo: Host, at: Open) -> None:
    viewer = at(**PROGRAM, zoom="10,60")
    rows = recording(demo).rows
    lives = zip(rows["start"], rows["end"], rows["charge"], strict=True)
    wanted = sum(start < 60 and end > 10 and charge > 0 for start, end, charge in lives)
    peak = viewer.text("live-heading")
    viewer.get("select-range").click()
    viewer.wait_for_state(between="10,60")
    heading = f"{wanted:,} buffers live between 10 and 59: "
    until(lambda: viewer.text("live-heading"), lambda text: text.startswith(heading), f"not {heading}")
    assert viewer.text("live-heading").endswith(" at once")
    status = viewer.get("buffer-table").get_by_role("status").inner_text()
    assert status.startswith(f"{wanted:,} of {wanted:,} buffers")
    assert viewer.text("buffers-heading").startswith(heading)
    viewer.page.reload()
    viewer.wait_until_ready()
    assert viewer.text("live-heading").startswith(heading)
    viewer.get("clear-range").click()
    viewer.wait_for_state(between=None)
    until(lambda: viewer.text("live-heading"), lambda text: text == peak, "still restricted")


def test_a_drag_on_the_axis_selects_a_range_and_a_click_inspects(at: Open) -> None:
    viewer = at(**PROGRAM, zoom="0,100", below="breakdown")
    plot = viewer.plot()
    mouse, below = viewer.page.mouse, plot.top + plot.height + 10
    mouse.move(plot.left + 0.2 * plot.width, below)
    mouse.down()
    mouse.move(plot.left + 0.4 * plot.width, below)
    mouse.move(plot.left + 0.6 * plot.width, below)
    mouse.up()
    until(lambda: viewer.state().get("between"), bool, "no range")
    first, last = map(float, viewer.state()["between"].split(","))
    assert (round(first), round(last)) == (20, 60)
    until(lambda: viewer.text("live-heading"), lambda text: "live between 2" in text, "not restricted")
    mouse.click(plot.left + 0.5 * plot.width, below)
    state = viewer.wait_for_state(position="50")
    assert "between" in state


def test_f_shows_the_chart_under_the_pointer_in_the_full_window_until_escape(at: Open) -> None:
    viewer = at(**PROGRAM, chart="treemap", below="breakdown")
    assert viewer.box("treemap").width < 0.9 * viewer.frame.evaluate("innerWidth")
    viewer.assert_full_window("treemap")


def test_the_address_map_follows_each_event_of_a_snapshot(at: Open) -> None:
    viewer = at(tab="memory_profile", run="torch", below="breakdown", chart="address", position="20")
    segments = viewer.get("address-map").locator("ol")
    seen = set()
    for position in range(21, 31):
        viewer.page.keyboard.press("]")
        viewer.wait_for_state(position=str(position))
        seen.add(segments.inner_text())
    assert len(seen) > 1, "the segments stay as they were"
    assert all("pool" in text and " in use" in text for text in seen)


def test_rows_without_a_source_line_are_grouped_by_size_and_role(at: Open) -> None:
    viewer = at(**PROGRAM, group="source", below="buffers")
    assert "without a source line: grouped by size and role." in viewer.text("missing-note")
    viewer.get("table-group").select_option("role")
    until(viewer.get("missing-note").count, lambda count: count == 0, "the note stays")
