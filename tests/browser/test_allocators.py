"""Memory Profile on the events of a recorded loop that leaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.browser.hosts import Host, open_demo
from support.browser.logs import TRAIN
from support.browser.pages import load
from support.browser.viewer import Viewer, until

LEAK = "leak/cpu"
PROFILE = {"tab": "memory_profile", "run": LEAK}


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with open_demo(tmp_path_factory.mktemp("leak"), "leak", "train_step") as host:
        yield host


@pytest.fixture
def profile(leaking: Host, tab: Viewer) -> Viewer:
    return load(tab, leaking.address(PROFILE))


def live_bytes(viewer: Viewer) -> str:
    return viewer.text("live-heading").partition(" in use")[0]


def test_groups_add_up_to_the_bytes_in_use_at_every_position(profile: Viewer) -> None:
    seen = set()
    for key in ("End", "Home", "ArrowRight", "ArrowRight", "ArrowRight"):
        before = profile.text("inspected-position")
        profile.get("usage-chart").press(key)
        until(lambda: profile.text("inspected-position"), before.__ne__, "it does not move")
        total = live_bytes(profile)
        assert profile.get("buffer-table").get_by_role("status").inner_text().endswith(f", {total}")
        seen.add(total)
    assert len(seen) > 2


def test_a_window_is_the_same_on_either_axis(profile: Viewer) -> None:
    profile.picture()
    curve = profile.curve()
    profile.page.mouse.move(*curve.at(0.5, 0.5))
    profile.wheel(-600, "Control")
    until(profile.state, lambda state: "zoom" in state, "no zoom in the address")
    zoom = profile.state()["zoom"]
    blocks = profile.picture()
    profile.get("axis-choice").select_option("time")
    profile.wait_for_state(axis="time", zoom=zoom)
    assert profile.picture() != blocks
    profile.page.reload()
    profile.wait_until_ready()
    assert profile.state()["zoom"] == zoom
    profile.get("axis-choice").select_option("events")
    profile.wait_for_state(axis=None, zoom=zoom)
    profile.page.mouse.move(1, 1)
    assert profile.picture()[0] == blocks[0]


def test_a_leak_is_one_group_and_a_row_of_it_opens_with_its_times(profile: Viewer) -> None:
    profile.get("group-line").first.click()
    profile.get("buffer-row").first.click()
    details = profile.details()
    assert "Allocated" in details
    assert "Lifetime" in details
    assert " ms" in details


def test_a_run_without_events_has_a_reason_and_a_link_to_memory_viewer(leaking: Host, tab: Viewer) -> None:
    viewer = load(tab, leaking.address({"tab": "memory_profile", "run": TRAIN}))
    assert "CPU backend" in viewer.text("no-events")
    viewer.get("to-memory-viewer").click()
    viewer.wait_until_ready()
    viewer.wait_for_state(tab="memory_viewer", run=TRAIN)
    assert viewer.text("headline").startswith("Peak ")
