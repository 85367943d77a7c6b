"""The page of a job that runs: it follows in every host, and keeps what the user has chosen."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from support.browser.hosts import HOSTS, Host, open_standalone, open_tensorboard, open_xprof
from support.browser.pages import open_pages
from support.browser.viewer import Viewer, until
from support.servers import DEMO
from support.watched_job import WatchedJob, watched_job

pytest.importorskip("jax")

SERVERS = {"standalone": open_standalone, "tensorboard": open_tensorboard, "xprof": open_xprof}
START_SECONDS = 120


@dataclass(frozen=True)
class Followed:
    job: WatchedJob
    host: Host
    viewer: Viewer
    logs: Path

    def samples(self) -> int:
        """Return the number of samples that the chart shows."""
        found = re.search(r"over ([\d,]+) samples", self.viewer.get("usage-chart").get_attribute("aria-label") or "")
        return int(found[1].replace(",", "")) if found else 0

    def grow(self) -> int:
        """Wait until the chart has more samples."""
        before = self.samples()
        return until(self.samples, lambda count: count > before, "the curve does not grow")

    def kind(self) -> str | None:
        kinds: list[str] = self.viewer.get("live-status").evaluate_all("all => all.map(one => one.dataset.kind)")
        return kinds[0] if kinds else None

    def requests(self) -> list[str]:
        """Return the list of all later requests for data, which grows."""
        found: list[str] = []
        self.viewer.page.on("request", lambda request: found.append(request.url) if "/api/" in request.url else None)
        return found


@pytest.fixture
def followed(request: pytest.FixtureRequest, tmp_path: Path, browser: Browser) -> Iterator[Followed]:
    """A page that shows a running job, in the host that the test names; the standalone server unless it does."""
    logs = tmp_path / "logs"
    shutil.copytree(DEMO / "oom", logs / "oom")
    with watched_job(logs, tmp_path) as job:
        name = getattr(request, "param", "standalone")
        # The server starts while the job imports JAX.
        with SERVERS[name](logs, tmp_path) as host, open_pages(host, browser, tab="memory_profile") as open_at:
            deadline = time.monotonic() + START_SECONDS
            while not (files := list(logs.rglob("*.watch"))) or files[0].stat().st_size < 1000:
                assert time.monotonic() < deadline, (tmp_path / "job.log").read_text()
                time.sleep(0.1)
            yield Followed(job, host, open_at(run=f"device_profiles/{files[0].parent.name}"), logs)


@pytest.mark.parametrize("followed", HOSTS, indirect=True)
def test_the_curve_grows_and_a_new_snapshot_is_a_mark_that_opens_it(followed: Followed) -> None:
    viewer, job = followed.viewer, followed.job
    until(followed.kind, lambda kind: kind == "live", "not live")
    followed.grow()
    job.save_snapshot()
    mark = viewer.get("snapshot-mark")
    until(mark.count, lambda count: count == 1, "no mark of the snapshot")
    assert re.search(
        r"Snapshot at [\d:]+, step \d+, signal, [\d.]+ MiB: open it", mark.get_attribute("aria-label") or ""
    )
    assert "New snapshot" in viewer.text("live-news")
    mark.focus()
    assert "signal" in viewer.frame.locator(".usage-chart .tooltip").inner_text()
    mark.press("Enter")
    viewer.wait_for_state(tab="snapshots")
    viewer.wait_until_ready()
    assert "live buffers" in viewer.text("headline")
    # An answer without news has no body, whatever the host does with headers.
    job.end()
    path = f"{followed.host.api}recordings?run={viewer.state()['run']}"
    first = followed.host.server.get(path)
    again = followed.host.server.get(path, {"If-None-Match": first.headers["ETag"]})
    assert (first.status, again.status, again.body) == (200, 304, b"")


def test_following_keeps_zoom_selection_scroll_and_open_menus(followed: Followed) -> None:
    viewer = followed.viewer
    until(followed.samples, lambda count: count > 10, "no samples")
    viewer.go(followed.host.address({**viewer.state(), "zoom": "2,8", "position": "4", "search": "layer"}))
    mine = "document.querySelector('.usage-chart canvas').dataset.mine"
    viewer.frame.evaluate(f"{mine} = 'yes'; document.body.style.minHeight = '3000px'; scrollTo(0, 77)")
    picker = viewer.get("run-picker")
    picker.click()
    picker.press("ArrowDown")
    active = viewer.frame.locator("[role=option].active").inner_text()
    for _ in range(3):
        followed.grow()
    state = viewer.state()
    assert (state["zoom"], state["position"], state["search"]) == ("2,8", "4", "layer")
    assert viewer.frame.evaluate(mine) == "yes", "the chart was made again"
    assert viewer.frame.evaluate("scrollY") == 77
    assert viewer.frame.locator("[role=option].active").inner_text() == active
    assert viewer.text("inspected-position") == "4"
    picker.press("Escape")


def test_a_paused_page_asks_for_nothing_until_it_follows_again(followed: Followed) -> None:
    viewer = followed.viewer
    followed.grow()
    viewer.get("pause").click()
    viewer.wait_for_state(paused="true")
    assert followed.kind() == "paused"
    viewer.page.wait_for_timeout(500)  # for earlier requests
    samples, requests = followed.samples(), followed.requests()
    viewer.page.wait_for_timeout(5000)
    assert [url for url in requests if not url.endswith("/runs")] == []
    assert followed.samples() == samples
    viewer.get("pause").click()
    followed.grow()
    viewer.wait_for_state(paused=None)


def test_a_job_that_ends_is_shown_to_its_end_and_asked_about_no_more(followed: Followed) -> None:
    viewer = followed.viewer
    followed.grow()
    followed.job.end()
    until(followed.kind, lambda kind: kind is None, "still live")
    assert viewer.text("live-news") == "The job has ended."
    recordings = followed.host.server.get(f"api/recordings?run={viewer.state()['run']}").text
    length = int(re.findall(r'"length": (\d+)', recordings)[0])
    until(followed.samples, lambda count: count == length, "the last samples are missing")
    requests = followed.requests()
    viewer.page.wait_for_timeout(4000)
    assert [url for url in requests if not url.endswith("/runs")] == []


def test_a_killed_job_is_silent(followed: Followed) -> None:
    followed.grow()
    followed.job.kill()
    until(followed.kind, lambda kind: kind == "silent", "nothing about silence")
    assert re.fullmatch(r"no new samples\s+for \d+ s", followed.viewer.text("live-status"))
    assert followed.viewer.text("live-news") == "No new samples."
    # Once the last sample is shown, answers have no body.
    page, answers = followed.viewer.page, list[int]()
    page.on("response", lambda answer: answers.append(answer.status) if "/api/" in answer.url else None)

    def latest() -> list[int]:
        page.wait_for_timeout(500)
        return answers[-3:]

    until(latest, lambda statuses: statuses == [304] * 3, "answers that are not 304")


def test_a_run_that_appears_is_in_the_run_picker(followed: Followed) -> None:
    viewer, logs = followed.viewer, followed.logs
    followed.grow()
    shutil.copytree(DEMO / "oom", logs / "later")

    def listed() -> bool:
        viewer.get("run-picker").click()
        names = viewer.options().all_inner_texts()
        viewer.get("run-picker").press("Escape")
        return any(name.startswith("later") for name in names)

    until(listed, bool, "the new run is not listed")
    assert viewer.state()["run"].startswith("device_profiles/")


@pytest.mark.parametrize("followed", ["tensorboard"], indirect=True)
def test_a_page_in_a_tab_of_tensorboard_that_is_not_open_asks_for_nothing(followed: Followed) -> None:
    pytest.importorskip("xprof")
    page = followed.viewer.page
    followed.grow()
    page.get_by_role("tab", name="Profile").click()
    frame = followed.viewer.frame
    until(lambda: frame.evaluate("getComputedStyle(frameElement).visibility"), lambda is_: is_ == "hidden", "shown")
    page.wait_for_timeout(1500)  # the frame is looked at once a second
    requests = followed.requests()
    page.wait_for_timeout(5000)
    assert [url for url in requests if "/memory/api/" in url] == []
    page.get_by_role("tab", name="Memory").click()
    # XProf has replaced the address, so the page starts at Overview.
    with page.expect_request("**/memory/api/recordings*"):
        pass
