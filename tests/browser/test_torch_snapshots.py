"""PyTorch snapshots and memory timelines on the page."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser.hosts import Host, open_standalone
from support.browser.pages import load
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
    """Return a training loop, followed by a tensor with all annotations and a request that does not fit."""
    training = Training(6, clears=clears)
    allocator = training.allocator
    context = "Torch-Compiled Region: 1/0"
    annotated = allocator.alloc(5 * MIB + 1, FORWARD, 9, (0, 2), compile_context=context, user_metadata=HOSTILE)
    assert annotated is not None
    allocator.request_free(annotated, FORWARD)
    allocator.alloc(100)
    allocator.complete_free(annotated, FORWARD)
    allocator.limit = sum(segment.size for segment in allocator.segments) + 10 * MIB
    assert allocator.alloc(40 * MIB, FORWARD) is None
    allocator.alloc(100)
    return training


def timeline(folder: Path) -> None:
    folder.mkdir()
    rows = [[-1, 1, 8 * MIB, 0], [10, 2, 4 * MIB, 4], [20, 2, 2 * MIB, 5], [30, 4, -2 * MIB, 5]]
    (folder / "worker.raw.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))


def open_run(tab: Viewer, host: Host, run: str, **state: str) -> Viewer:
    return load(tab, host.address({"tab": "memory_profile", "run": run, **state}))


def row_of(metadata: str) -> str:
    """Return the row of the allocation with this user metadata. Rows are in order of the alloc events."""
    events = [event for event in training(False).allocator.trace if event["action"] == "alloc"]
    return str(next(row for row, event in enumerate(events) if event.get("user_metadata") == metadata))


def test_an_out_of_memory_failure_is_marked_and_a_click_goes_there(tab: Viewer, host: Host) -> None:
    viewer = open_run(tab, host, "kept")
    assert "Out of memory: 40.0 MiB requested, 10.0 MiB free" in text(viewer, "headline")
    mark = viewer.frame.get_by_test_id("out-of-memory")
    title = mark.get_attribute("title")
    assert title is not None and title.startswith("out of memory: 40.0 MiB requested, 10.0 MiB free, at ")
    mark.click()
    trace = training(False).allocator.trace
    at = next(number for number, event in enumerate(trace) if event["action"] == "oom")
    until(lambda: text(viewer, "inspected-position"), lambda found: found == str(at), "not at the out-of-memory event")
    assert viewer.frame.locator("code", has_text="oom").first.is_visible()


def test_surviving_gradients_are_reported(tab: Viewer, host: Host) -> None:
    for run, sentence in (("kept", "Gradients survive into the next iteration: 18.0 MiB"),
                          ("cleared", "Gradients do not survive into the next iteration")):  # fmt: skip
        viewer = open_run(tab, host, run)
        growth = until(lambda: text(viewer, "growth"), lambda found: "Gradients" in found, "growth")  # noqa: B023
        assert sentence in growth
        assert "The optimizer's state, 19.0 MiB, is allocated in its first step in this trace." in growth


def test_details_of_a_tensor_show_all_its_annotations(tab: Viewer, host: Host) -> None:
    viewer = open_run(tab, host, "kept", selected=row_of(HOSTILE))
    details = until(lambda: text(viewer, "details"), lambda found: "Freed at" in found, "the stacks")
    for known in (
        "5,243,392 bytes", "511 B rounding", "private pool (0, 2), stream 0x9", "Torch-Compiled Region: 1/0", HOSTILE,
        "Free requested", "linear.py", "Lifetime",
    ):  # fmt: skip
        assert known in details
    assert tab.page.title() != "owned"


def test_roles_are_a_column(tab: Viewer, host: Host) -> None:
    viewer = open_run(tab, host, "kept", group="none")
    viewer.get("buffer-table").wait_for()
    page_text = viewer.frame.locator("main").inner_text()
    for role in ("parameter", "optimizer state", "gradient", "activation"):
        assert role in page_text
    assert "Role" in page_text


def test_a_timeline_has_its_categories(tab: Viewer, host: Host) -> None:
    viewer = open_run(tab, host, "timeline")
    assert viewer.headline().startswith("Peak 14.0 MiB \N{MIDDLE DOT} parameters 57%")
    assert "torch.profiler" in until(lambda: text(viewer, "growth"), lambda found: "steps" in found, "growth")


def test_a_snapshot_without_a_trace_shows_one_moment(tab: Viewer, host: Host) -> None:
    viewer = open_run(tab, host, "moment", chart="address")
    assert viewer.headline().startswith("Peak ")
    assert "only the moment at which it was taken" in text(viewer, "caveats")
    assert "JAX" not in viewer.frame.locator("main").inner_text()


def text(viewer: Viewer, testid: str) -> str:
    return viewer.get(testid).inner_text()
