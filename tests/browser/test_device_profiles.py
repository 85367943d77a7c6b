"""Device profiles in their tab and in Compare."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator
from support.browser.hosts import Host, open_standalone
from support.browser.pages import Open, load
from support.browser.viewer import Viewer, until
from support.pprof_files import Frame, Sample, write
from support.servers import DEMO

HOSTILE = '"><img src=x onerror="document.title=\'owned\'">{{7*7}}\u202e'
LIB = Frame("pjit", "/x/site-packages/jax/_src/pjit.py", 9)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("device_profiles")
    logs = folder / "logs"
    for run in ("device_profile", "device_profile_leak", "train_step", "scan_remat", "v5e_mended", "v5e_out_of_memory"):
        shutil.copytree(DEMO / run, logs / run)
    devices(logs / "devices")
    with open_standalone(logs, folder) as host:
        yield host


def devices(folder: Path) -> None:
    folder.mkdir()
    step, main = Frame("step", "train.py", 7), Frame(HOSTILE, "train.py", 3)
    write(folder, [Sample([LIB, step, main], i << 20, device=f"cuda:{i}") for i in (1, 2)])


@pytest.fixture
def open_page(host: Host, tab: Viewer) -> Open:
    return lambda **state: load(tab, host.address(state))


def at(viewer: Viewer, testid: str) -> Locator:
    return viewer.frame.get_by_test_id(testid)


def boxes(viewer: Viewer) -> list[str]:
    """Return the texts of all boxes, read at one moment."""
    read = "all => all.map(box => [...box.querySelectorAll('text')].map(line => line.textContent).join(', '))"
    found: list[str] = at(viewer, "call-graph-box").evaluate_all(read)
    return found


def test_the_call_graph_of_jaxs_documentation(open_page: Open) -> None:
    viewer = open_page(tab="snapshots", run="device_profile")
    assert "80.1 MiB in 3 live buffers on cpu:0" in at(viewer, "headline").inner_text()
    assert "func2, 38.1 MiB (47.62%), of 76.3 MiB (95.24%)" in boxes(viewer)
    assert "func1, 38.1 MiB (47.62%)" in boxes(viewer)
    viewer.frame.get_by_label("Framework frames").check()
    summary = until(at(viewer, "call-graph-summary").inner_text, lambda text: "of 38 functions" in text, "all frames")
    assert summary == "15 of 38 functions drawn; the others have no bytes"
    assert "__call__, 80.1 MiB (100%)" in boxes(viewer)


def test_a_function_is_selected_in_graph_table_and_url(open_page: Open) -> None:
    viewer = open_page(tab="snapshots", run="device_profile")
    at(viewer, "top-row").filter(has_text="func2").click()
    details = at(viewer, "function-details")
    assert "func1" in details.inner_text() and "38.1 MiB" in details.inner_text()
    picked = viewer.frame.locator('[data-testid="call-graph-box"][aria-pressed="true"]')
    assert (picked.locator("title").text_content() or "").startswith("func2:")
    viewer.wait_for_state(picked="func2")
    viewer.page.reload()
    viewer.wait_until_ready()
    assert "func1" in at(viewer, "function-details").inner_text()
    details.get_by_role("button", name="Ignore").click()
    until(lambda: boxes(viewer), lambda found: not any(box.startswith("func2") for box in found), "without func2")
    viewer.wait_for_state(ignore="^func2$")


def test_the_call_graph_works_with_the_keyboard(open_page: Open) -> None:
    viewer = open_page(tab="snapshots", run="device_profile")
    box = at(viewer, "call-graph-box").filter(has_text="func1")
    box.focus()
    viewer.page.keyboard.press("Enter")
    assert "func2" in at(viewer, "function-details").inner_text()
    field = at(viewer, "pattern-focus")
    field.fill("(")
    field.press("Enter")
    viewer.frame.get_by_text("Not a regular expression").wait_for()
    field.fill("func1")
    # A half-typed pattern survives a redraw of the section.
    viewer.page.evaluate("location.hash += '&frames=true'")
    toggle = viewer.frame.get_by_role("checkbox", name="Framework frames")
    until(toggle.is_checked, bool, "the section is not redrawn")
    viewer.page.evaluate("location.hash = location.hash.replace('&frames=true', '')")
    until(toggle.is_checked, lambda checked: not checked, "the section is not redrawn")
    assert field.input_value() == "func1"
    field.press("Enter")
    until(lambda: len(boxes(viewer)), lambda count: count == 6, "main to func1")


def test_the_top_table_is_searched_sorted_and_saved(open_page: Open) -> None:
    viewer = open_page(tab="snapshots", run="device_profile")
    table = at(viewer, "top-table")
    table.get_by_role("button", name="Flat").click()
    first = at(viewer, "top-row").first
    assert first.inner_text().split("\n")[0].startswith("38.1 MiB")
    at(viewer, "table-search").fill("func")
    with viewer.page.expect_download() as download:
        table.get_by_role("button", name="Save CSV").click()
    lines = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert {line["function"]: line["cum_bytes"] for line in lines} == {"func1": "40000000", "func2": "80000000"}


def test_the_series_shows_the_leak_and_links_to_each_profile(open_page: Open) -> None:
    viewer = open_page(tab="snapshots", run="device_profile_leak", host="memory9")
    leaking = at(viewer, "growth-site").filter(has_text="anotherfunc")
    assert "leak" in leaking.inner_text() and "Grows by" in leaking.inner_text()
    points = at(viewer, "growth-point")
    assert points.count() == 9
    points.nth(2).click()
    viewer.wait_for_state(host="memory3")
    viewer.wait_until_ready()
    headline = at(viewer, "headline")
    assert headline.inner_text().startswith("Leak: ") and "bad" in str(headline.get_attribute("class"))
    assert "4.04 MiB" in viewer.frame.locator("main").inner_text()
    above = "[...document.querySelectorAll('.growth-series, .call-graph')].map(each => each.className)"
    until(lambda: viewer.frame.evaluate(above), ["growth-series", "call-graph"].__eq__, "the order of the sections")


def test_devices_of_one_file_are_shown_separately_or_together_and_names_stay_text(open_page: Open) -> None:
    viewer = open_page(tab="snapshots", run="devices", space="cuda:1")
    assert at(viewer, "device-list").get_by_role("button").all_inner_texts() == ["cuda:1", "cuda:2"]
    assert "step, 1.00 MiB (100%)" in boxes(viewer)
    at(viewer, "devices").get_by_role("button", name="All devices").click()
    until(lambda: boxes(viewer), lambda found: "step, 3.00 MiB (100%)" in found, "both devices")
    assert viewer.frame.locator("img").count() == 0
    assert any(HOSTILE[-20:] in box for box in boxes(viewer))
    assert viewer.page.title() != "owned"


def test_comparing_a_leak_shows_the_call_inside_anotherfunc(open_page: Open) -> None:
    viewer = open_page(tab="compare", run="device_profile_leak", steps="source", frames="true")
    assert at(viewer, "headline").inner_text().startswith("1.68 MiB (+43.6%) more")
    steps = [step.inner_text() for step in at(viewer, "waterfall-step").all()]
    assert len(steps) == 3 and "anotherfunc" in steps[1] and "+1.68 MiB" in steps[1]
    assert "normal, 0 of, 1.68 MiB (43.56%)" in boxes(viewer)
    assert not any(box.startswith("afunction") for box in boxes(viewer))
    at(viewer, "swap").click()
    until(at(viewer, "headline").inner_text, lambda text: "less" in text, "A and B are not swapped")
    assert "normal, 0 of, \u22121.68 MiB (\u221230.34%)" in until(
        lambda: boxes(viewer), lambda found: any("\u2212" in box for box in found), "negative figures"
    )


def test_two_programs_compared(open_page: Open) -> None:
    viewer = open_page(tab="compare", run="train_step/cpu")
    until(at(viewer, "recording-a").input_value, lambda name: "jit_train_step(0)" in name, "no name of the recording")
    assert "more" in at(viewer, "headline").inner_text()
    rows = at(viewer, "change-row")
    assert "only in" in rows.first.inner_text()
    at(viewer, "change-only_b").click()
    until(lambda: rows.first.inner_text(), lambda text: text.startswith("only in B"), "not only the new buffers")
    viewer.frame.get_by_label("at position").first.fill("3")
    viewer.frame.get_by_label("at position").first.press("Enter")
    viewer.wait_for_state(at_a="3")
    viewer.wait_until_ready()
    text = at(viewer, "headline").inner_text()
    viewer.page.reload()
    viewer.wait_until_ready()
    assert at(viewer, "headline").inner_text() == text


def test_causes_of_the_change_between_two_peaks(open_page: Open) -> None:
    program = "jit_train_step|HBM"
    sides = {"a": f"v5e_mended||{program}", "b": f"v5e_out_of_memory||{program}"}
    viewer = open_page(tab="compare", run="v5e_out_of_memory", **sides)
    causes = viewer.get("causes")
    until(causes.inner_text, lambda text: "donated buffer opt_state is copied now" in text, "no causes")
    viewer.frame.get_by_label("at position").first.fill("3")
    viewer.frame.get_by_label("at position").first.press("Enter")
    viewer.wait_for_state(at_a="3")
    until(causes.count, lambda count: count == 0, "causes of another moment than the peak")
