"""One Chromium for all browser tests, one server of each host at a time, and no network beyond loopback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from support.browser.hosts import HOSTS, Host, open_standalone, open_tensorboard, open_xprof
from support.browser.logs import build_logs, listing, lock
from support.browser.pages import ARGUMENTS, START, VIEWPORT, Open, new_context, open_page
from support.browser.viewer import Viewer
from support.browser.watch import Watch
from support.servers import REPOSITORY

FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report  # type: ignore[return-value]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not (REPOSITORY / "tb_memplugin" / "static" / "index.html").exists():
        pytest.exit("the page is not built: run `make tb_memplugin/static/index.html`", returncode=1)
    names = ("chromium", "chromium-browser", "google-chrome")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if program is None:
        # In CI, a missing browser is a failure: no test may be skipped unnoticed.
        missing = "no Chromium: apt-get install chromium, or set CHROMIUM=/path/to/chromium"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_logs(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="session", params=HOSTS)
def host(request: pytest.FixtureRequest, logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Start each host on the same runs. They are read-only for our own code; XProf writes caches beside them."""
    folder = tmp_path_factory.mktemp("host")
    copy = folder / "logs"
    shutil.copytree(logs, copy)
    if request.param == "xprof":
        with open_xprof(copy, folder) as host:
            yield host
        return
    lock(copy, locked=True)
    before = listing(copy)
    opened = {"standalone": open_standalone, "tensorboard": open_tensorboard}[request.param]
    try:
        with opened(copy, folder) as host:
            yield host
        assert listing(copy) == before, "the logdir was written to"
    finally:
        lock(copy, locked=False)


@pytest.fixture(scope="session")
def session_context(browser: Browser, host: Host) -> Iterator[tuple[BrowserContext, Watch]]:
    """Yield one browser context for all tests of a host; its cache speeds up later pages."""
    context = new_context(browser)
    yield context, Watch(context, host.ours)
    context.close()


@pytest.fixture
def context(
    session_context: tuple[BrowserContext, Watch], request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[BrowserContext]:
    """Yield the context of the session. Requests to other origins and errors of our page fail the test.

    Pages that the test opens are closed after it.
    """
    context, watch = session_context
    kept = list(context.pages)
    yield context
    failed = request.node.stash.get(FAILED, False)
    for number, page in enumerate(context.pages):
        if failed:
            page.screenshot(path=tmp_path / f"failed-{number}.png")
            print(f"screenshot of {page.url}: {tmp_path}/failed-{number}.png")
        # Chromium does not scroll other pages by the wheel below the height of the window of one that was closed.
        page.set_viewport_size(VIEWPORT)
        if page not in kept:
            page.close()
    assert watch.take() == []


@pytest.fixture
def open_at(host: Host, context: BrowserContext) -> Open:
    """Return a function that opens the page in its host at a state."""
    return lambda expected="ready", **state: open_page(host, context, expected, state)


@pytest.fixture(scope="session")
def shared_viewer(host: Host, session_context: tuple[BrowserContext, Watch]) -> Iterator[Viewer]:
    viewer = open_page(host, session_context[0], "ready", START)
    yield viewer
    viewer.page.close()


@pytest.fixture
def viewer(shared_viewer: Viewer, host: Host, context: BrowserContext) -> Viewer:
    """Return the shared page, at the largest program of a run in its initial state, scrolled to the top."""
    shared_viewer.go(host.address(START))
    # The page returns to where a test left it, and holds that place until there is input.
    shared_viewer.frame.evaluate("dispatchEvent(new Event('wheel')); scrollTo(0, 0)")
    shared_viewer.picture()
    return shared_viewer


@pytest.fixture
def go_to(viewer: Viewer, host: Host) -> Open:
    """Return a function that changes the shared page's state."""

    def go(expected: str = "ready", **state: str) -> Viewer:
        viewer.go(host.address(state), expected)
        return viewer

    return go


@pytest.fixture(scope="module")
def tab_of_module(browser: Browser) -> Iterator[tuple[Viewer, list[str]]]:
    """Yield a page, and the errors that nothing in it has caught."""
    context = new_context(browser)
    problems: list[str] = []
    context.on("weberror", lambda error: problems.append(str(error.error)))
    yield Viewer(context.new_page()), problems
    context.close()


@pytest.fixture
def tab(tab_of_module: tuple[Viewer, list[str]]) -> Iterator[Viewer]:
    """Yield a page that tests of a module share: each loads it anew, at half the cost of a context of its own."""
    viewer, problems = tab_of_module
    problems.clear()
    yield viewer
    assert problems == []


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield an empty page in a context of its own."""
    context = new_context(browser)
    yield context.new_page()
    context.close()
