"""The Fit tab: candidates of a fit as chart and tables, each with its program in Memory Viewer and in Compare."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, BrowserContext
from support.browser.hosts import Host, open_demo, open_standalone, open_tensorboard, open_xprof
from support.browser.pages import checked_context, load
from support.browser.viewer import Viewer, until
from support.fits import ERROR, STEP, TRACEBACK, candidate, raised, reserving, write_candidate, write_search
from support.servers import BIN

from tb_memplugin.model.fit import Outcome

FIT = {"tab": "fit"}
DASH = "\u2013"
NONE_172, FULL_280 = "fit_gpt.step_v5e-2x2_remat-none_batch-172", "fit_gpt.step_v5e-2x2_remat-full_batch-280"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Outcome]]:
    """Return a logdir with a search, and candidates of another step without one."""
    logs = tmp_path_factory.mktemp("fit") / "logs"
    found = write_search(logs)
    others = [candidate(step="fit_resnet.py:step2", depth=depth) for depth in (50, 101)]
    for outcome in (reserving(others[0], 9.0), raised(others[1])):
        write_candidate(logs, outcome)
    return logs, found


@pytest.fixture(scope="module")
def server(written: tuple[Path, list[Outcome]]) -> Iterator[Host]:
    logs = written[0]
    with open_standalone(logs, logs.parent) as host:
        yield host


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with checked_context(browser) as context:
        yield context


@pytest.fixture
def fit(server: Host, tab: Viewer) -> Viewer:
    return load(tab, server.address(FIT))


def rows(viewer: Viewer, table: str = "fit-candidates") -> list[dict[str, str]]:
    """Return the visible lines of a table, top to bottom: texts by heading."""
    read = """table => {
      const headings = [...table.querySelectorAll('[role=columnheader]')].map(h => h.innerText.replace(/ [▾▴]$/, ''));
      const top = line => new DOMMatrix(getComputedStyle(line).transform).f;
      return [...table.querySelectorAll('.virtual-line')].sort((a, b) => top(a) - top(b)).map(line =>
        Object.fromEntries([...line.querySelectorAll('[role=gridcell]')].map((c, i) => [headings[i], c.innerText])));
    }"""
    found: list[dict[str, str]] = viewer.get(table).evaluate(read)
    return found


def batches(viewer: Viewer) -> list[str]:
    return [row["batch"] for row in rows(viewer)]


def test_a_logdir_without_a_fit_has_no_tab(tmp_path: Path, context: BrowserContext) -> None:
    with open_demo(tmp_path, "v5e_train_step") as host:
        page = context.new_page()
        page.goto(host.address({"tab": "overview"}))
        viewer = Viewer(page).wait_until_ready()
        assert viewer.get("tab-compare").count() == 1
        assert viewer.get("tab-fit").count() == 0
        viewer.page.goto("about:blank")
        viewer.page.goto(host.address(FIT))
        until(lambda: viewer.frame.inner_text("body"), lambda text: "This logdir has no fit" in text, "no message")


def test_the_tab_shows_the_largest_values_and_every_candidate(fit: Viewer) -> None:
    assert fit.text("headline").startswith("172 is the largest batch that fits on v5e:2x2 (remat=none): ")
    assert "jax 0.12.0.1, libtpu 0.0.52" in fit.text("fit-versions")
    assert STEP in fit.text("fit-versions")
    largest = {(row["remat"], row["Change"]): row["Largest batch"] for row in rows(fit, "fit-largest")}
    assert largest == {
        ("dots", DASH): "none fits",
        ("full", DASH): "8",
        ("none", DASH): "172",
        ("none", "donate state"): "190 end of the range",
    }
    found = {(row["remat"], row["batch"]): row for row in rows(fit)}
    assert len(found) == 8
    assert found["none", "176"]["Fits"] == "does not fit"
    assert found["none", "176"]["Recomputed"] == "71, 71% of FLOPs"
    assert found["full", "280"]["Fits"] == "does not fit"
    assert found["dots", "7"]["Error"].startswith("ValueError")
    assert "v5e:2x2: limit 15.75 GiB" in (fit.get("fit-limit").text_content() or "")
    assert fit.get("fit-point").count() == 8


def test_a_row_opens_the_program_with_the_same_figures(fit: Viewer, written: tuple[Path, list[Outcome]]) -> None:
    [recorded] = [outcome for outcome in written[1] if outcome.run == NONE_172]
    fit.frame.locator("[data-testid=fit-candidate-row]", has_text="172").click()
    fit.wait_for_state(tab="memory_viewer", run=NONE_172)
    until(lambda: fit.get("headline").count(), bool, "not opened")
    figures = until(fit.figures, bool, "no figures")
    assert figures["live_peak"] == f"{recorded.peak_bytes:,} bytes"
    assert figures["reserved"] == f"{recorded.reserved_bytes:,} bytes"
    fit.page.go_back()
    fit.wait_for_state(tab="fit", run=None)
    until(fit.get("fit-curve").count, bool, "Back did not return")


def test_a_point_opens_its_candidate_and_keys_go_along_the_line(fit: Viewer) -> None:
    points = fit.get("fit-point")
    points.and_(fit.frame.locator("[tabindex='0']")).focus()
    focused = fit.frame.locator("[data-testid=fit-point]:focus")
    fit.page.keyboard.press("ArrowDown")
    until(lambda: focused.get_attribute("aria-label"), lambda text: "batch=190" in (text or ""), "not the next line")
    fit.wait_for_state(choice="v5e:2x2 remat=none donate:state")
    fit.page.keyboard.press("ArrowUp")
    fit.wait_for_state(choice="v5e:2x2 remat=none")
    for _ in range(5):
        fit.page.keyboard.press("ArrowLeft")
    until(lambda: focused.get_attribute("aria-label"), lambda text: "batch=8," in (text or ""), "not at the left")
    fit.page.keyboard.press("ArrowRight")
    fit.page.keyboard.press("ArrowRight")
    until(lambda: focused.get_attribute("aria-label"), lambda text: "batch=172" in (text or ""), "not the third")
    fit.page.keyboard.press("Enter")
    fit.wait_for_state(tab="memory_viewer", run=NONE_172)


def test_a_click_on_a_mark_opens_it(fit: Viewer) -> None:
    mark = fit.frame.locator("[data-testid=fit-point][aria-label^='batch=280']")
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert box is not None
    fit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    until(
        lambda: fit.frame.locator(".tooltip").all_inner_texts(), lambda texts: "batch=280" in str(texts), "no tooltip"
    )
    fit.page.mouse.down()
    fit.page.mouse.up()
    fit.wait_for_state(tab="memory_viewer", run=FULL_280)


def test_f_shows_the_curve_in_the_full_window(fit: Viewer) -> None:
    fit.assert_full_window("fit-chart")


def test_two_ticks_compare(fit: Viewer) -> None:
    assert fit.get("fit-tick").count() == 2, "only candidates with a program can be compared"
    fit.frame.get_by_label("Compare batch=172, remat=none, v5e:2x2").check()
    until(lambda: fit.text("fit-candidates"), lambda text: "Tick another one to compare" in text, "not ticked")
    fit.frame.get_by_label("Compare batch=280, remat=full, v5e:2x2").click()
    state = fit.wait_for_state(tab="compare", run=FULL_280)
    assert state["a"].startswith(f"{NONE_172}|")
    assert state["b"].startswith(f"{FULL_280}|")
    until(fit.get("waterfall").count, bool, "no comparison")
    fit.assert_full_window("waterfall")
    fit.page.go_back()
    fit.wait_for_state(tab="fit")
    assert fit.frame.locator("[data-testid=fit-tick]:checked").count() == 0


def test_the_traceback_of_the_users_code_is_shown_in_full(fit: Viewer) -> None:
    fit.frame.locator("[data-testid=fit-candidate-row]", has_text="dots").click()
    fit.wait_for_state(candidate="fit_gpt.step_v5e-2x2_remat-dots_batch-7")
    assert fit.text("traceback").strip() == TRACEBACK.strip()
    fit.page.keyboard.press("Escape")
    fit.wait_for_state(candidate=None)
    assert fit.get("fit-candidate").count() == 0


def test_search_sort_and_csv(fit: Viewer, tmp_path: Path) -> None:
    fit.frame.get_by_test_id("fit-candidates").get_by_role("button", name="Reserved").click()
    fit.wait_for_state(sort="-reserved")
    assert batches(fit)[-1] == "7", "without a program"
    fit.get("table-search").fill("remat=none")
    until(lambda: sorted(batches(fit), key=int), ["8", "48", "172", "176", "190"].__eq__, "not filtered")
    assert {row["remat"] for row in rows(fit, "fit-largest")} == {"none"}
    saved = tmp_path / "saved.csv"
    with fit.page.expect_download() as download:
        fit.get("fit-candidates").get_by_role("button", name="Save CSV").click()
    download.value.save_as(saved)
    found = list(csv.DictReader(io.StringIO(saved.read_text(), newline="")))
    assert [row["batch"] for row in found] == batches(fit)
    assert found[0]["fits"] == "False".lower()


def test_a_step_without_a_search_has_bars(fit: Viewer) -> None:
    fit.get("fit-step").select_option(label="fit_resnet.py:step2")
    fit.wait_for_state(step="fit_resnet.py:step2")
    until(fit.get("fit-bars").count, bool, "no bars")
    fit.assert_full_window("fit-chart")
    assert fit.get("fit-largest").count() == 0
    assert fit.get("fit-bar").count() == 2
    assert "ValueError" in (fit.get("fit-bar").nth(1).text_content() or "")
    fit.get("fit-bar").nth(0).press("Enter")
    fit.wait_for_state(candidate="fit_resnet.step2_v5e-2x2_depth-50")
    assert fit.get("open-candidate").count() == 0, "its program is not in the logdir"


def test_the_chart_is_saved_in_the_colors_of_the_light_theme(fit: Viewer, tmp_path: Path) -> None:
    fit.page.emulate_media(color_scheme="dark")
    for ending in ("svg", "png"):
        fit.save_picture("fit-chart", ending).save_as(tmp_path / f"chart.{ending}")
    svg = (tmp_path / "chart.svg").read_text()
    words = [text.text for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"batch", "v5e:2x2: limit 15.75 GiB", "parameter", "activation"} <= set(words)
    assert "var(" not in svg and "color(" not in svg
    assert "rgb(230, 159, 0)" in svg, "activations of the light theme"
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_has_the_tab_offline(written: tuple[Path, list[Outcome]], context: BrowserContext) -> None:
    file = written[0].with_name("report.html")
    command = [str(BIN / "tb-memplugin"), "export", str(written[0]), "--to", str(file)]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    context.set_offline(True)
    page = context.new_page()
    page.goto(f"{file.as_uri()}#tab=fit")
    report = Viewer(page).wait_until_ready()
    assert report.get("fit-point").count() == 8
    assert len(rows(report)) == 8
    assert report.get("fit-tick").count() == 0, "a report has no comparisons"
    report.frame.locator("[data-testid=fit-candidate-row]", has_text="172").click()
    report.wait_for_state(tab="memory_viewer", run=NONE_172)
    report.get("tab-fit").click()
    report.frame.locator("[data-testid=fit-candidate-row]", has_text="dots").click()
    assert report.text("traceback").strip() == TRACEBACK.strip()


def test_candidates_that_all_failed_are_shown(tmp_path: Path, context: BrowserContext) -> None:
    write_candidate(tmp_path / "logs", raised(candidate(batch=7)))
    with open_standalone(tmp_path / "logs", tmp_path) as host:
        page = context.new_page()
        page.goto(host.address({"tab": "overview"}))
        viewer = Viewer(page)
        until(viewer.get("fit-bars").count, bool, "the tab did not open by itself")
        assert viewer.text("headline") == f"v5e:2x2 batch=7 could not be compiled: {ERROR}."


@pytest.mark.parametrize("kind", ["tensorboard", "xprof"])
def test_other_hosts_have_the_tab(
    kind: str, written: tuple[Path, list[Outcome]], tmp_path: Path, context: BrowserContext
) -> None:
    opened = {"tensorboard": open_tensorboard, "xprof": open_xprof}[kind]
    with opened(written[0], tmp_path) as host:
        page = context.new_page()
        page.goto(host.address(FIT))
        viewer = Viewer(page).wait_until_ready()
        until(viewer.get("fit-point").count, (8).__eq__, "no chart")
        viewer.frame.locator("[data-testid=fit-candidate-row]", has_text="172").click()
        viewer.wait_for_state(tab="memory_viewer", run=NONE_172)


def test_the_front_of_memory_and_time_opens_candidates(tmp_path: Path, context: BrowserContext) -> None:
    logs = tmp_path / "logs"
    for remat, gib, seconds in (("none", 12.0, 1.0), ("full", 6.0, 1.3), ("slow", 13.0, 2.0)):
        outcome = replace(reserving(candidate(step="gpt.py:step", remat=remat, batch=64), gib), step_seconds=seconds)
        write_candidate(logs, outcome)
    with open_standalone(logs, logs.parent) as host:
        page = context.new_page()
        page.goto(host.address(FIT))
        viewer = Viewer(page).wait_until_ready()
        points = viewer.get("fit-front-point")
        assert points.count() == 3
        assert page.locator(".fit-curve .point.chosen.pointing").count() == 2  # the slow one needs more memory
        assert "remat=none" in viewer.get("fit-plan").inner_text()
        points.first.focus()
        page.keyboard.press("Enter")
        viewer.get("fit-candidate").wait_for()
