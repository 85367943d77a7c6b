"""Times of a program: the axis, the table of instructions, and buffers that are held unused, measured and estimated."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from support.browser.hosts import Host, open_standalone
from support.browser.pages import Open, load
from support.browser.viewer import Viewer, until
from support.servers import DEMO

from tb_memplugin.analysis.program_times import program_times
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.questions.recording.times import times

MEASURED, ESTIMATED = "leak", "v5e_train_step"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("times")
    for run in (MEASURED, ESTIMATED):
        shutil.copytree(DEMO / run, folder / "logs" / run)
    with open_standalone(folder / "logs", folder) as host:
        yield host


@pytest.fixture
def at(demo: Host, tab: Viewer) -> Open:
    return lambda **state: load(tab, demo.address(state))


@pytest.mark.parametrize(("run", "title"), [(f"{MEASURED}/cpu", "Measured"), (ESTIMATED, "Estimated")])
def test_the_longest_instruction_is_listed_first_and_opens_its_position(at: Open, run: str, title: str) -> None:
    viewer = at(tab="memory_viewer", run=run, below="time")
    listing = listing_of_path(str(DEMO / run.partition("/")[0]))
    recording = next(one for one in listing.recordings if one.program and one.is_main_memory)
    found = program_times(recording)
    assert found is not None and recording.program is not None
    shown = viewer.get("times").inner_text()
    assert f"{title} time" in shown and all(sentence in shown for sentence in times(recording)["sentences"])
    longest = int(found.seconds.argmax())
    first = viewer.get("timed-instructions-row").first
    assert recording.program.name[longest] in first.inner_text()
    first.click()
    viewer.wait_for_state(position=str(longest))
    assert " ms" in viewer.get("moment").inner_text()
    viewer.get("held-unused-row").first.click()
    assert "Lifetime" in viewer.details()


def test_an_axis_of_time_shows_the_same_window_and_is_in_the_address(at: Open) -> None:
    viewer = at(tab="memory_viewer", run=ESTIMATED, zoom="400,700")
    blocks = viewer.picture()
    viewer.get("axis-choice").select_option("time")
    viewer.wait_for_state(axis="time", zoom="400,700")
    until(viewer.picture, lambda timed: timed != blocks, "the times are not drawn")
    viewer.page.reload()
    viewer.wait_until_ready()
    viewer.get("below-time").wait_for()
    viewer.get("axis-choice").select_option("events")
    viewer.wait_for_state(axis=None, zoom="400,700")
    viewer.page.mouse.move(1, 1)
    viewer.assert_picture(blocks)
