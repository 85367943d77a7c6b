"""Tabs: their names, and the way from a tab without data to one with data."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator

import pytest
from support.browser.hosts import Host, open_standalone
from support.browser.logs import TRAIN
from support.browser.pages import Open, load
from support.browser.viewer import Viewer
from support.servers import DEMO, TESTS
from support.torch_training import Training


def test_tabs_are_named_after_their_contents_and_in_xprof_after_its_tools(go_to: Open, host: Host) -> None:
    viewer = go_to(tab="memory_viewer", run=TRAIN)
    ours = "Memory Viewer" if host.name == "xprof" else "Program"
    assert viewer.frame.locator("[aria-label=Views] [role=tab]").all_inner_texts() == ["Overview", "Compare", ours]
    assert "XProf" in (viewer.get("tab-memory_viewer").get_attribute("title") or "")


def test_a_tab_without_data_is_absent_and_a_link_to_it_leads_to_the_one_with_data(go_to: Open) -> None:
    viewer = go_to(tab="memory_viewer", run=TRAIN)
    assert viewer.get("tab-snapshots").count() == 0
    viewer = go_to(tab="snapshots", run=TRAIN)
    viewer.wait_until_ready()
    assert viewer.get("tab-snapshots").get_attribute("aria-selected") == "true"
    links = viewer.get("tabs-with-data")
    name = viewer.get("tab-memory_viewer").inner_text()
    assert links.inner_text() == f"This run has compiled programs in {name}."
    links.get_by_role("button").click()
    viewer.wait_for_state(tab="memory_viewer")
    viewer.wait_until_ready()


def test_every_host_answers_about_the_progress_of_reading(viewer: Viewer) -> None:
    ask = "run => fetch(`api/progress?run=${encodeURIComponent(run)}`).then(answer => answer.json())"
    assert viewer.frame.evaluate(ask, TRAIN) == {"read_bytes": 0, "total_bytes": 0, "seconds": 0}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("mixed")
    logs = folder / "logs"
    for run in ("tensors", "error", "both"):
        (logs / run).mkdir(parents=True)
    (logs / "tensors" / "rank0.pickle").write_bytes(pickle.dumps(Training(2, clears=True).snapshot()))
    for run in ("error", "both"):
        shutil.copy(TESTS / "data" / "oom_texts" / "tpu_compile.txt", logs / run / "step.oom.txt")
    shutil.copy(DEMO / "device_profile" / "memory.prof", logs / "both")
    with open_standalone(logs, folder) as host:
        yield host


def test_people_with_pytorch_snapshots_find_them(mixed: Host, tab: Viewer) -> None:
    for name in ("snapshots", "memory_viewer"):
        viewer = load(tab, mixed.address({"tab": name, "run": "tensors"}))
        assert viewer.text("tabs-with-data") == "This run has PyTorch snapshots in Over time."
        viewer.get("to-memory-profile").click()
        viewer.wait_for_state(tab="memory_profile", host="rank0")
        viewer.wait_until_ready()


def test_the_tab_of_one_moment_is_named_after_what_the_run_has(mixed: Host, tab: Viewer) -> None:
    named = {"error": "Out of memory", "both": "Device profile, out of memory"}
    for run, name in named.items():
        viewer = load(tab, mixed.address({"tab": "overview", "run": run}))
        assert viewer.get("tab-snapshots").inner_text() == name
