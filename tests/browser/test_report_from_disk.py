"""A report opened from disk without network, compared with the served page."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, ConsoleMessage
from support.browser.expected import recording
from support.browser.hosts import Host, open_standalone
from support.browser.logs import HOSTILE, HOSTILE_MODULE, LARGEST, MARKUP, SCRIPT, SMALL, TRAIN, listing
from support.browser.pages import load, new_context
from support.browser.viewer import Viewer, until
from support.servers import BIN, DEMO

from benchmarks import generate
from tb_memplugin.questions.kinds.verdict import verdict_text

LONG = "synthetic_5000/cpu"  # more positions than the usage chart has buckets
T = TypeVar("T")
Both = Callable[..., tuple[Viewer, Viewer]]


@pytest.fixture(scope="module")
def served(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("served")
    copy = folder / "logs"
    shutil.copytree(logs, copy)
    for run in ("leak", "device_profile"):
        shutil.copytree(DEMO / run, copy / run)
    generate.write(copy, 5000)
    with open_standalone(copy, folder) as host:
        yield host


@pytest.fixture(scope="module")
def file(served: Host) -> Path:
    """Return a report of the whole logdir, which the export leaves unchanged."""
    logs = served.server.log.with_name("logs")
    before = listing(logs)
    written = export(logs, "report.html")
    assert listing(logs) == before
    return written


def export(logs: Path, name: str, *more: str) -> Path:
    file = logs.with_name(name)
    command = [str(BIN / "tb-memplugin"), "export", str(logs), "--to", str(file), *more]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return file


@dataclass
class Offline:
    """A page of a browser without network, with its requests and errors."""

    viewer: Viewer
    requests: list[str]
    problems: list[str]

    def open(self, file: Path, **state: str) -> Viewer:
        return load(self.viewer, f"{file.as_uri()}#{urlencode(state, quote_via=quote)}")


@pytest.fixture(scope="module")
def offline_of_module(browser: Browser) -> Iterator[Offline]:
    context = new_context(browser)
    context.set_offline(True)
    found = Offline(Viewer(context.new_page()), [], [])
    context.on("request", lambda request: found.requests.append(request.url))
    context.on("console", lambda message: _add_problem(message, found.problems))
    context.on("weberror", lambda error: found.problems.append(str(error.error)))
    yield found
    context.close()


@pytest.fixture
def offline(offline_of_module: Offline, file: Path) -> Iterator[Offline]:
    """Yield an offline page; requests for other files, errors and warnings fail the test."""
    found = offline_of_module
    found.requests.clear()
    found.problems.clear()
    yield found
    read = {url.partition("#")[0] for url in found.requests if not url.startswith(("blob:", "data:"))}
    assert read
    assert all(url.startswith(file.parent.as_uri()) and url.endswith(".html") for url in read)
    assert found.problems == []


def wait_until_equal(shown: Callable[[], T], expected: Callable[[], T]) -> None:
    """Wait until both values are equal and not empty."""
    until(lambda: (shown(), expected()), lambda pair: bool(pair[0]) and pair[0] == pair[1], "not the same")


def _add_problem(message: ConsoleMessage, problems: list[str]) -> None:
    if message.type in ("error", "warning"):
        problems.append(message.text)


@pytest.fixture
def both(offline: Offline, file: Path, served: Host, tab: Viewer) -> Both:
    """Return a function that opens the report and the served page in the same state."""

    def open(**state: str) -> tuple[Viewer, Viewer]:
        return offline.open(file, **{"tab": "memory_viewer", **state}), load(tab, served.address(state))

    return open


def test_a_report_shows_the_same_as_the_server(both: Both) -> None:
    report, page = both(run=TRAIN, module=LARGEST)
    assert report.headline() == page.headline()
    assert report.figures() == page.figures() != {}
    report.assert_picture(page.picture())
    wait_until_equal(report.table, page.table)
    wait_until_equal(report.get("advice-piece").all_inner_texts, page.get("advice-piece").all_inner_texts)


def test_a_click_selects_and_keys_move_the_position(both: Both, served: Host) -> None:
    expected = recording(served, TRAIN, LARGEST)
    row = expected.uncovered()[0]
    report, page = both(run=TRAIN, module=LARGEST)
    for viewer in (report, page):
        viewer.picture()
        viewer.page.mouse.click(*expected.point(row, viewer.plot()))
        viewer.wait_for_state(selected=str(row))
        viewer.page.keyboard.press("[")
        viewer.wait_for_state(position=str(expected.peak - 1))
        assert viewer.text("inspected-position") == str(expected.peak - 1)
    details = report.details()
    assert details == page.details()
    assert "make_demo.py:" in details
    wait_until_equal(report.table, page.table)


def test_an_address_restores_the_same_picture(offline: Offline, file: Path, served: Host) -> None:
    peak = recording(served, TRAIN, LARGEST).peak
    state = {"tab": "memory_viewer", "run": TRAIN, "module": LARGEST, "position": str(peak + 7), "selected": "300"}
    viewer = offline.open(file, **state, zoom="100,300")
    before = viewer.picture()
    viewer.page.reload()
    viewer.wait_until_ready()
    viewer.assert_picture(before)
    assert viewer.text("inspected-position") == str(peak + 7)


def test_trees_open(both: Both) -> None:
    report, page = both(run=TRAIN, module=LARGEST)
    for viewer in (report, page):
        viewer.get("chart").get_by_role("button", name="Tree table").click()
        until(viewer.get("tree-table").get_by_role("row").count, lambda count: count > 3, "no lines in the tree")
    wait_until_equal(report.get("tree-table").inner_text, page.get("tree-table").inner_text)


def test_a_zoomed_curve_is_as_detailed(both: Both, served: Host) -> None:
    report, page = both(run=LONG)
    coarse = until(lambda: curve(page), bool, "no curve")
    wait_until_equal(lambda: curve(report), lambda: curve(page))
    zoomed = served.address({"run": LONG, "zoom": "2000,2300"})
    with page.page.expect_response(lambda answer: "/api/usage" in answer.url):
        page.go(zoomed)
    report.go(zoomed)
    # The server's answer is drawn once the page is at rest; the report may take longer.
    page.picture()
    assert curve(page) != coarse
    wait_until_equal(lambda: curve(report), lambda: curve(page))


def views(viewer: Viewer) -> list[str]:
    return viewer.frame.get_by_role("tablist", name="Views").get_by_role("tab").all_inner_texts()


def curve(viewer: Viewer) -> str:
    read = "document.querySelector('[data-testid=usage-chart] canvas')?.toDataURL() ?? ''"
    return str(viewer.page.evaluate(read))


def test_an_allocator_has_its_tab(both: Both) -> None:
    report, page = both(tab="memory_profile", run="leak/cpu")
    wait_until_equal(report.headline, page.headline)
    until(page.get("growth").inner_text, lambda text: "leak" in text, "no leak")
    wait_until_equal(report.get("growth").inner_text, page.get("growth").inner_text)


def test_a_device_profile_has_its_call_graph(both: Both) -> None:
    report, page = both(tab="snapshots", run="device_profile")
    for viewer in (report, page):
        viewer.get("granularity").get_by_role("button", name="Line").click()
        viewer.wait_for_state(calls="line")
        viewer.wait_until_ready()
    wait_until_equal(lambda: report.text("call-graph-summary"), lambda: page.text("call-graph-summary"))
    # Only a server can filter a call graph.
    for viewer, offered in ((report, 0), (page, 1)):
        viewer.get("top-row").first.click()
        until(viewer.get("function-details").count, bool, "no details of a function")
        assert viewer.get("pattern-focus").count() == offered
        assert viewer.frame.get_by_role("button", name="Focus", exact=True).count() == offered


def test_functions_that_need_a_server_are_not_offered(offline: Offline, file: Path) -> None:
    for run, tabs in (
        ("", ["Program"]),
        (TRAIN, ["Program"]),
        ("leak/cpu", ["Program", "Over time"]),
        ("device_profile", ["Device profile"]),
    ):
        viewer = offline.open(file, run=run)
        assert views(viewer) == ["Overview", *tabs]
    assert viewer.get("paste").count() == 0
    assert viewer.text("report-sign") == "Report"
    for state in (
        {"tab": "compare"},
        {"tab": "fleet"},
        {"tab": "memory_viewer", "run": TRAIN, "module": "jit_other(9)"},
    ):
        viewer = offline.open(file, **state)
        assert "Not in this report" in viewer.frame.get_by_role("status").first.inner_text()


def test_one_recording_opens_in_its_tab(offline: Offline, served: Host) -> None:
    logs = served.server.log.with_name("logs")
    viewer = offline.open(export(logs, "one.html", "--recording", f"^{TRAIN}.*jit_loss"))
    assert views(viewer) == ["Program"]
    assert viewer.headline() == verdict_text(recording(served, TRAIN, SMALL).meta["verdict"])
    assert viewer.text("report-sign").startswith("Report, 1 of ")


def test_markup_in_names_stays_text(offline: Offline, file: Path, served: Host) -> None:
    viewer = offline.open(file, tab="memory_viewer", run=HOSTILE)
    expected = recording(served, HOSTILE, f"{HOSTILE_MODULE}(2)")
    assert viewer.headline() == verdict_text(expected.meta["verdict"])
    viewer.picture()
    viewer.page.mouse.click(*expected.point(expected.uncovered()[0], viewer.plot()))
    details = viewer.details()
    assert MARKUP in details
    assert SCRIPT in details
    assert viewer.frame.locator("img").count() == 0
    assert viewer.page.evaluate("typeof window.pwned") == "undefined"


def test_pictures_are_saved(offline: Offline, file: Path, tmp_path: Path) -> None:
    viewer = offline.open(file, tab="memory_viewer", run=TRAIN)
    viewer.picture()
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<svg")):
        saved = tmp_path / kind
        viewer.save_picture("allocation-timeline", kind).save_as(saved)
        assert start in saved.read_bytes()[:200]
