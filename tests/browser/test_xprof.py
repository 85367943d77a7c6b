"""Our page in XProf's: its sidebar and our pickers name the same place, whichever of them chooses it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, Route
from support.browser.hosts import Host, open_xprof
from support.browser.logs import DAMAGED, LARGEST, REMAT, SMALL, TRAIN
from support.browser.pages import new_context
from support.browser.viewer import Viewer, until
from support.servers import DEMO

LEAK = "leak/cpu"  # has a program, and an allocator's events
SESSION, TOOL, HOST, MODULE = range(4)  # the lists of XProf's sidebar, from the top


@pytest.fixture(scope="module")
def host(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("in_xprof")
    shutil.copytree(logs, folder / "logs")
    shutil.copytree(DEMO / "leak", folder / "logs" / "leak")
    with open_xprof(folder / "logs", folder) as host:
        yield host


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = new_context(browser)
    page = context.new_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    yield page
    context.close()


def opened(host: Host, page: Page, query: str) -> Viewer:
    page.goto(f"{host.server.url}?{query}")
    return Viewer(page).wait_until_ready()


def sidebar(page: Page) -> list[str]:
    """Return what each list of XProf's sidebar shows."""
    return [text.strip() for text in page.locator("sidenav .item-container mat-select").all_inner_texts()]


def choose(page: Page, which: int, name: str) -> None:
    page.locator("sidenav .item-container mat-select").nth(which).click()
    page.get_by_role("option", name=name, exact=True).click()


def wait_for_sidebar(page: Page, *expected: str) -> None:
    until(lambda: sidebar(page)[: len(expected)], lambda shown: shown == [*expected], "the sidebar")


def is_at_rest(page: Page) -> None:
    """Check that nobody goes on writing to the address. XProf writes the parameter `firstLoad` late."""

    def addresses() -> list[str]:
        before = str(page.evaluate("location.href"))
        page.wait_for_timeout(500)
        return [before, str(page.evaluate("location.href"))]

    until(addresses, lambda both: both[0] == both[1], "the address does not come to rest")


def test_the_sidebar_shows_what_our_page_shows(host: Host, page: Page) -> None:
    """Choose a module in our page. XProf alone starts with the alphabetically first one."""
    viewer = opened(host, page, f"tag=memory_viewer&run={TRAIN}")
    viewer.wait_for_state(module=LARGEST)
    wait_for_sidebar(page, TRAIN, "Memory Viewer", "localhost", LARGEST)
    is_at_rest(page)
    entries = page.evaluate("history.length")
    viewer.pick("module-picker", "loss", SMALL)
    wait_for_sidebar(page, TRAIN, "Memory Viewer", "localhost", SMALL)
    is_at_rest(page)
    assert page.evaluate("history.length") == entries + 1  # as many as choices
    page.go_back()
    wait_for_sidebar(page, TRAIN, "Memory Viewer", "localhost", LARGEST)
    viewer.wait_for_state(tab="memory_viewer", module=LARGEST)
    page.reload()
    wait_for_sidebar(page, TRAIN, "Memory Viewer", "localhost", LARGEST)


def test_the_sidebar_shows_the_tab_of_our_page(host: Host, page: Page) -> None:
    viewer = opened(host, page, f"tag=memory_viewer&run={LEAK}")
    wait_for_sidebar(page, LEAK, "Memory Viewer", "localhost", LARGEST)
    is_at_rest(page)
    entries = page.evaluate("history.length")
    viewer.get("tab-memory_profile").click()
    wait_for_sidebar(page, LEAK, "Memory Profile", "localhost")
    is_at_rest(page)
    viewer.get("tab-memory_viewer").click()
    wait_for_sidebar(page, LEAK, "Memory Viewer", "localhost", LARGEST)
    is_at_rest(page)
    assert page.evaluate("history.length") == entries + 2
    for tab, tool in (("memory_profile", "Memory Profile"), ("memory_viewer", "Memory Viewer")):
        page.go_back()
        wait_for_sidebar(page, LEAK, tool, "localhost")
        viewer.wait_for_state(tab=tab)


def test_our_page_shows_what_the_sidebar_shows(host: Host, page: Page) -> None:
    viewer = opened(host, page, f"tag=memory_viewer&run={TRAIN}")
    wait_for_sidebar(page, TRAIN, "Memory Viewer", "localhost", LARGEST)
    viewer.frame.evaluate("window.kept = true")
    choose(page, MODULE, SMALL)
    viewer.wait_for_state(module=SMALL)
    until(lambda: viewer.get("module-picker").input_value(), lambda name: name == SMALL, "the picker")
    choose(page, SESSION, REMAT)
    viewer.wait_for_state(run=REMAT, tab="memory_viewer")
    choose(page, TOOL, "Memory Profile")
    viewer.wait_for_state(run=REMAT, tab="memory_profile")
    assert viewer.frame.evaluate("window.kept"), "the page was loaded again"
    is_at_rest(page)
    for expected in (REMAT, TRAIN):
        page.go_back()
        viewer.wait_for_state(run=expected, tab="memory_viewer")
        wait_for_sidebar(page, expected, "Memory Viewer")
    choose(page, TOOL, "Overview Page")
    until(viewer.page.locator("iframe[title=Memory]").count, lambda count: count == 0, "our page covers another tool")
    page.go_back()
    wait_for_sidebar(page, TRAIN, "Memory Viewer", "localhost", SMALL)
    viewer.wait_for_state(run=TRAIN, module=SMALL)


def test_xprofs_view_is_of_the_same_module(host: Host, page: Page) -> None:
    viewer = opened(host, page, f"tag=memory_viewer&run={TRAIN}")
    viewer.wait_for_state(module=LARGEST)
    wait_for_sidebar(page, TRAIN, "Memory Viewer", "localhost", LARGEST)
    button = page.get_by_test_id("xprof-stock-toggle")
    assert button.inner_text() == "XProf's view"
    with page.expect_request(lambda request: "/data?" in request.url and "tag=memory_viewer" in request.url) as asked:
        button.click()
    assert f"module_name={LARGEST}" in asked.value.url
    assert button.inner_text() == "Back to tb-memplugin"


def test_the_sidebar_has_runs_and_hosts_and_our_pickers_have_room(host: Host, page: Page) -> None:
    viewer = opened(host, page, f"tag=memory_viewer&run={DAMAGED}")
    viewer.get("module-picker").wait_for()
    for picker in ("run-picker", "host-picker"):
        until(viewer.get(picker).count, lambda count: count == 0, picker)
    field = viewer.frame.locator(".module-picker")
    assert (field.bounding_box() or {"width": 0})["width"] >= 160


def test_a_run_that_xprof_does_not_have_can_be_picked(tmp_path: Path, page: Page) -> None:
    for run in ("train_step", "device_profile"):
        shutil.copytree(DEMO / run, tmp_path / "logs" / run)
    with open_xprof(tmp_path / "logs", tmp_path) as host:
        viewer = opened(host, page, f"tag=memory_viewer&run={TRAIN}")
        viewer.wait_for_state(module=LARGEST)
        viewer.pick("run-picker", "device", "device_profile")
        viewer.wait_for_state(run="device_profile")
        is_at_rest(page)
        assert viewer.get("run-picker").input_value() == "device_profile"
        viewer.get("tab-snapshots").click()
        viewer.wait_for_state(run="device_profile", tab="snapshots")
        viewer.pick("run-picker", "train", TRAIN)
        viewer.get("tab-memory_viewer").click()
        viewer.wait_for_state(run=TRAIN, module=LARGEST)
        wait_for_sidebar(page, TRAIN, "Memory Viewer", "localhost", LARGEST)


def test_a_link_stays_open_when_xprof_chooses_a_module_late(tmp_path: Path, page: Page) -> None:
    """XProf has another run, of which it then opens the first module: nobody has picked these."""
    for run in ("train_step", "v5e_mended", "v5e_train_step"):
        shutil.copytree(DEMO / run, tmp_path / "logs" / run, ignore=shutil.ignore_patterns("*.hlo_proto.pb"))
    held: list[Route] = []
    page.route("**/module_list?**", lambda route: held.append(route))
    with open_xprof(tmp_path / "logs", tmp_path) as host:
        page.goto(host.address({"tab": "compare", "run": "v5e_mended"}))
        viewer = Viewer(page).wait_until_ready()
        until(lambda: len(held), bool, "no list of modules")
        is_at_rest(page)  # XProf may ask twice
        for route in held:
            route.continue_()
        page.unroute("**/module_list?**")
        wait_for_sidebar(page, TRAIN, "Memory Viewer", "localhost", SMALL)
        is_at_rest(page)
        viewer.wait_for_state(tab="compare", run="v5e_mended")
        assert "GiB" in viewer.text("headline")


def test_a_buffer_leads_to_xprofs_graph_viewer(host: Host, page: Page) -> None:
    viewer = opened(host, page, f"tag=memory_viewer&run={TRAIN}")
    viewer.wait_for_state(module=LARGEST)
    viewer.get("table-group").select_option("none")
    viewer.get("buffer-row").nth(2).click()
    link = viewer.get("xprof-graph_viewer")
    link.wait_for()
    instruction = str(link.get_attribute("title")).removeprefix("Show ").partition(" in ")[0]
    assert instruction in viewer.get("details").inner_text()
    drawn = ("/data?", "tag=graph_viewer", f"node_name={instruction}&module_name={quote(LARGEST, safe='')}")
    with page.expect_request(lambda request: all(part in request.url for part in drawn)):
        link.click()
    wait_for_sidebar(page, TRAIN, "Graph Viewer")
    page.go_back()
    viewer.wait_for_state(module=LARGEST)


def test_memory_over_time_leads_to_xprofs_trace_viewer(host: Host, page: Page) -> None:
    viewer = opened(host, page, f"tag=memory_profile&run={LEAK}")
    viewer.get("xprof-trace_viewer").click()
    wait_for_sidebar(page, LEAK, "Trace Viewer")
