"""PyTorch's snapshots and timelines as a person meets them."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from support.browser.hosts import Host, open_standalone
from support.browser.viewer import Viewer, until
from support.caching_allocator import MIB
from support.torch_training import FORWARD, Training

HOSTILE = '"><img src=x onerror="document.title=\'owned\'">'


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("tensors")
    logs = folder / "logs"
    for name, clears in (("kept", False), ("cleared", True)):
        (logs / name).mkdir(parents=True)
        (logs / name / "rank0.pickle").write_bytes(pickle.dumps(training(clears).snapshot()))
    (logs / "moment").mkdir()
    moment = {**training(True).snapshot(), "device_traces": []}
    (logs / "moment" / "rank0.snapshot.json").write_text(json.dumps(moment))
    timeline(logs / "timeline")
    with open_standalone(logs, folder) as host:
        yield host


def training(clears: bool) -> Training:
    """A loop, then a tensor of which all is told, and a request for which there is no room."""
    training = Training(6, clears=clears)
    allocator = training.allocator
    context = "Torch-Compiled Region: 1/0"
    told = allocator.alloc(5 * MIB + 1, FORWARD, 9, (0, 2), compile_context=context, user_metadata=HOSTILE)
    assert told is not None
    allocator.request_free(told, FORWARD)
    allocator.alloc(100)
    allocator.complete_free(told, FORWARD)
    allocator.limit = sum(segment.size for segment in allocator.segments) + 10 * MIB
    assert allocator.alloc(40 * MIB, FORWARD) is None
    allocator.alloc(100)
    return training


def timeline(folder: Path) -> None:
    folder.mkdir()
    rows = [[-1, 1, 8 * MIB, 0], [10, 2, 4 * MIB, 4], [20, 2, 2 * MIB, 5], [30, 4, -2 * MIB, 5]]
    (folder / "worker.raw.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))


def opened(page: Page, host: Host, run: str, **state: str) -> Viewer:
    page.goto(host.address({"tab": "memory_profile", "run": run, **state}))
    return Viewer(page).wait_until_ready()


def row_of(told: str) -> str:
    """The row that a part of an event's text marks: rows are in order of the alloc events."""
    events = [event for event in training(False).allocator.trace if event["action"] == "alloc"]
    return str(next(row for row, event in enumerate(events) if event.get("user_metadata") == told))


def test_running_out_of_memory_is_marked_and_a_click_goes_there(page: Page, host: Host) -> None:
    viewer = opened(page, host, "kept")
    assert "It ran out of memory: 40.0 MiB were asked for, and 10.0 MiB were free." in text(viewer, "headline")
    mark = viewer.frame.get_by_test_id("out-of-memory")
    title = mark.get_attribute("title")
    assert title is not None and title.startswith("out of memory: 40.0 MiB requested, 10.0 MiB free, at ")
    mark.click()
    trace = training(False).allocator.trace
    at = next(number for number, event in enumerate(trace) if event["action"] == "oom")
    until(lambda: text(viewer, "inspected-position"), lambda found: found == str(at), "the event at which it ran out")
    assert viewer.frame.locator("code", has_text="oom").first.is_visible()


def test_gradients_that_survive_are_told(page: Page, host: Host) -> None:
    for run, said in (("kept", "Gradients survive into the next iteration: 18.0 MiB"),
                      ("cleared", "Gradients do not survive into the next iteration")):  # fmt: skip
        viewer = opened(page, host, run)
        growth = until(lambda: text(viewer, "growth"), lambda found: "Gradients" in found, "growth")  # noqa: B023
        assert said in growth
        assert "The optimizer's state, 19.0 MiB, appears in its first step here." in growth


def test_all_that_is_known_of_a_tensor(page: Page, host: Host) -> None:
    viewer = opened(page, host, "kept", selected=row_of(HOSTILE))
    details = until(lambda: text(viewer, "details"), lambda found: "Freed at" in found, "the stacks")
    for known in (
        "5,243,392 bytes", "511 B rounding", "private pool (0, 2), stream 0x9", "Torch-Compiled Region: 1/0", HOSTILE,
        "Free requested", "linear.py", "Lifetime",
    ):  # fmt: skip
        assert known in details
    assert page.title() != "owned"


def test_roles_are_a_column_and_colours(page: Page, host: Host) -> None:
    viewer = opened(page, host, "kept", group="none")
    said = viewer.frame.locator("main").inner_text()
    for role in ("parameter", "optimizer state", "gradient", "activation"):
        assert role in said
    assert "Category" in said


def test_a_timeline_has_its_categories(page: Page, host: Host) -> None:
    viewer = opened(page, host, "timeline")
    assert text(viewer, "headline").startswith("Peak 14.0 MiB allocated on device: 57% parameter")
    assert "torch.profiler" in until(lambda: text(viewer, "growth"), lambda found: "steps" in found, "growth")


def test_a_snapshot_without_a_trace_is_a_moment(page: Page, host: Host) -> None:
    viewer = opened(page, host, "moment", chart="address")
    assert text(viewer, "headline").startswith("Peak ") and " allocated of " in text(viewer, "headline")
    assert "the moment at which the snapshot was taken" in text(viewer, "caveats")
    assert "JAX" not in viewer.frame.locator("main").inner_text()


def text(viewer: Viewer, testid: str) -> str:
    return viewer.frame.get_by_test_id(testid).inner_text()
