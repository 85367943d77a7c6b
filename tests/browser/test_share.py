"""The Share menu: the link and the report in every host, and printing."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser
from support.browser.hosts import Host, in_host
from support.browser.logs import LARGEST, TRAIN
from support.browser.pages import Open, new_context
from support.browser.viewer import PATIENCE_MS, Viewer, until


def open_menu(viewer: Viewer) -> None:
    if viewer.get("share").get_attribute("aria-expanded") == "false":
        viewer.get("share").click()
    until(viewer.frame.get_by_role("menuitem").count, bool, "no menu")


def test_the_link_opens_the_same_page(viewer: Viewer, browser: Browser, host: Host) -> None:
    viewer.get("chart").get_by_text("Treemap").click()
    open_menu(viewer)
    viewer.get("share-link").click()
    until(lambda: viewer.text("share-status"), lambda text: text == "Link copied", "not copied")
    link = viewer.page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(host.server.url) and "chart=treemap" in link
    context = new_context(browser)
    page = context.new_page()
    page.goto(link)
    other = Viewer(page).wait_until_ready()
    other.get("treemap").wait_for()
    assert other.text("live-heading") == viewer.text("live-heading")
    context.close()
    viewer.page.keyboard.press("Escape")
    assert viewer.frame.get_by_role("menuitem").count() == 0
    assert viewer.frame.evaluate("document.activeElement.dataset.testid") == "share"


def test_the_report_of_the_run_is_saved_and_opens_offline(viewer: Viewer, browser: Browser, tmp_path: Path) -> None:
    open_menu(viewer)
    with viewer.page.expect_download(timeout=PATIENCE_MS) as download:
        viewer.get("share-report").click()
    run = viewer.wait_for_state()["run"]
    assert download.value.suggested_filename == f"memory-report-{run.replace('/', '_')}.html"
    path = tmp_path / "report.html"
    download.value.save_as(path)
    until(lambda: viewer.text("share-status"), lambda text: text.startswith("Saved memory-report"), "not saved")
    context = new_context(browser)
    context.set_offline(True)
    page = context.new_page()
    page.goto(f"{path.as_uri()}#{'&'.join(f'{k}={v}' for k, v in viewer.state().items())}")
    report = Viewer(page).wait_until_ready()
    assert report.figures() == viewer.figures()
    report.get("share").click()  # pictures only
    assert report.get("share-report").count() == 0
    context.close()


@in_host("tensorboard")
def test_a_report_that_cannot_be_written_says_so(viewer: Viewer) -> None:
    error = '{"error": {"what": "Other reports are being written", "where": "x", "remedy": "try again"}}'
    viewer.page.route("**/api/report*", lambda route: route.fulfill(status=503, body=error))
    open_menu(viewer)
    viewer.get("share-report").click()
    until(lambda: viewer.text("share-status"), lambda text: "try again" in text, "no error")
    viewer.page.unroute("**/api/report*")
    viewer.page.route("**/api/report*", lambda route: route.fulfill(status=200, body="<!doctype html>"))
    viewer.get("share-report").click()
    until(lambda: viewer.text("share-status"), lambda text: "incomplete" in text, "a part of a report was saved")
    viewer.page.unroute("**/api/report*")


@in_host("xprof")
def test_the_menu_works_with_keys(open_at: Open) -> None:
    viewer = open_at(tab="overview")
    viewer.get("share").focus()
    viewer.page.keyboard.press("Enter")
    seen = []
    for _ in range(3):
        seen.append(viewer.frame.evaluate("document.activeElement.dataset.testid"))
        viewer.page.keyboard.press("ArrowDown")
    assert seen == ["share-link", "share-report", "share-print"]


@in_host("standalone")
def test_a_printed_page_is_light_without_controls_and_has_all_rows(open_at: Open) -> None:
    viewer = open_at(tab="memory_viewer", run=TRAIN, module=LARGEST, chart="flame")
    page = viewer.page
    page.emulate_media(color_scheme="dark")
    until(lambda: viewer.frame.evaluate("document.documentElement.dataset.theme"), lambda to: to == "dark", "no theme")
    rows = "document.querySelectorAll('[data-testid=buffer-table] .virtual-line').length"
    few = viewer.frame.evaluate(rows)
    page.emulate_media(media="print", color_scheme="dark")
    until(lambda: viewer.frame.evaluate(rows), lambda count: count > few, "only the visible rows")
    wanted = int(viewer.get("buffer-table").get_by_role("grid").get_attribute("aria-rowcount") or 0)
    assert viewer.frame.evaluate(rows) == min(wanted, 500)
    assert viewer.frame.evaluate("document.documentElement.dataset.theme") == "light"
    assert TRAIN in viewer.text("print-title") and LARGEST in viewer.text("print-title")
    for control in ("share", "run-picker", "tree-search", "timeline-all"):
        assert not viewer.get(control).is_visible(), control
    flame = viewer.get("flame-graph").evaluate("host => [host.clientHeight, host.querySelector('canvas').clientHeight]")
    assert flame[0] >= flame[1]
    corner = """() => {
      const canvas = document.querySelector('[data-testid=timeline-picture]');
      return [...canvas.getContext('2d').getImageData(2, 2, 1, 1).data.slice(0, 3)];
    }"""
    until(lambda: viewer.frame.evaluate(corner), lambda pixel: min(pixel) > 200, "the timeline stays dark")
    page.emulate_media(media="screen", color_scheme="light")
    until(lambda: viewer.frame.evaluate(rows), lambda count: count == few, "the rows stay")
