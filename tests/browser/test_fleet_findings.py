"""The Fleet tab: findings about hosts, faults of older captures, and the trend with what raised it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from support.browser.axe import violations
from support.browser.hosts import Host, open_standalone
from support.browser.pages import load
from support.browser.viewer import Viewer, until

from benchmarks.pods.pod import START, Pod, Trend, write_trend
from benchmarks.pods.truth import Capture, Faults

FAULTS = Faults(outliers=1, leaks=1, missing=1, damaged=1, other_programs=1)
NAME = "pod 1|w-{}"  # ids of recordings are separated by `|`
KINDS = ("Missing", "Unreadable", "Another program", "Leak")


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TB_MEMPLUGIN_FLEET_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def pod(own_cache: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Capture]]:
    """A capture with every fault, and a healthy one ten minutes later."""
    logs = tmp_path_factory.mktemp("pod") / "logs"
    truth = Pod(12, 2, 0.5, faults=FAULTS, skew_seconds=3, name=NAME).write(logs)
    Pod(12, 2, 0.5, name=NAME).write(logs, start=START + timedelta(minutes=10))
    with open_standalone(logs, logs.parent) as host:
        yield host, truth


@pytest.fixture(scope="module")
def days(own_cache: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Trend]]:
    logs = tmp_path_factory.mktemp("days") / "logs"
    truth = write_trend(Pod(2, 1, 0.5), logs, 5)
    with open_standalone(logs, logs.parent) as host:
        yield host, truth


def test_an_older_capture_with_faults_is_named_and_opens(pod: tuple[Host, Capture], tab: Viewer) -> None:
    host, truth = pod
    viewer = load(tab, host.address({"tab": "fleet"}))
    missing = truth.missing[0].rpartition("-")[2]
    until(
        lambda: viewer.text("fleet-other-faults"), lambda text: f"1 host missing: {missing}" in text, "no fault named"
    )
    viewer.get("fleet-other-faults").get_by_role("button").click()
    rows = viewer.get("fleet-findings-row")
    until(rows.count, lambda count: count == len(KINDS), "findings")
    texts = rows.all_inner_texts()
    hosts = [truth.missing[0], next(iter(truth.damaged)), truth.other_programs[0], truth.leaks[0].host]
    for text, kind, named in zip(texts, KINDS, hosts, strict=True):
        assert text.startswith(kind) and named in text
    assert "60 s" in viewer.text("fleet-rule")
    assert viewer.get("fleet-sessions-row").count() == len(truth.sessions)
    assert "2 captures" in viewer.get("fleet-captures").inner_text()
    assert violations(viewer) == []


def test_another_program_is_compared_and_a_leak_is_opened(pod: tuple[Host, Capture], tab: Viewer) -> None:
    host, truth = pod
    address = host.address({"tab": "fleet", "run": f"run42/{next(iter(truth.sessions))}"})
    viewer = load(tab, address)
    viewer.get("fleet-findings-row").nth(2).click()
    state = viewer.wait_for_state(tab="compare")
    assert f"|{truth.other_programs[0]}|jit_train_step" in state["b"] and truth.other_programs[0] not in state["a"]
    viewer.go(address)
    viewer.get("fleet-findings-row").nth(3).click()
    viewer.wait_for_state(tab="memory_profile", host=truth.leaks[0].host)


def test_the_trend_is_read_when_it_is_opened_and_its_rise_is_compared(days: tuple[Host, Trend], tab: Viewer) -> None:
    host, truth = days
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url) if "fleet_trend" in request.url else None)
    viewer = load(tab, host.address({"tab": "fleet"}))
    assert not asked
    viewer.get("trend-by").get_by_role("button", name="By day").click()
    viewer.wait_for_state(fleet_trend="day")
    viewer.get("trend-rise").wait_for()
    assert viewer.get("trend-point").count() == len(truth.days) - 1
    assert truth.source_line in (viewer.get("trend-rise-label").text_content() or "")
    row = viewer.get("trend-points-row").nth([day.run for day in truth.days].index(truth.changed))
    assert row.inner_text().startswith(truth.changed) and "1.50 GiB, new" in row.inner_text()
    assert violations(viewer, "[data-testid=fleet-trend]") == []
    viewer.get("trend-rise").focus()
    viewer.page.keyboard.press("Enter")
    state = viewer.wait_for_state(tab="compare")
    before = truth.days[[day.run for day in truth.days].index(truth.changed) - 1].run
    assert state["a"].startswith(f"{before}/") and state["b"].startswith(f"{truth.changed}/")


def test_a_point_opens_its_run_and_the_series_is_part_of_the_address(days: tuple[Host, Trend], tab: Viewer) -> None:
    host, truth = days
    viewer = load(
        tab, host.address({"tab": "fleet", "fleet_trend": "capture", "fleet_series": "program:jit_train_step"})
    )
    viewer.get("trend-rise").focus()
    viewer.page.keyboard.press("Home")
    viewer.page.keyboard.press("Enter")
    state = viewer.wait_for_state(tab="memory_viewer")
    assert state["run"].startswith(f"{truth.days[0].run}/") and state["module"].startswith("jit_train_step")
