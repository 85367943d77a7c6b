"""One Chromium for the whole run of tests, one server of each host at a time, and no network beyond loopback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from support.browser.hosts import HOSTS, Host, open_standalone, open_tensorboard, open_xprof
from support.browser.logs import build_logs, listing, lock
from support.browser.pages import ARGUMENTS, START, Open, new_context, open_page
from support.browser.viewer import Viewer
from support.browser.watch import Watch

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
    names = ("chromium", "chromium-browser", "google-chrome")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if program is None:
        # Where everything is meant to be tested, nothing may be left out quietly.
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
    """Each host over the same runs. What is ours gets them read-only and leaves them so; XProf writes its caches."""
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
    """One person's browser for all tests of a host: what it keeps in its cache makes the next page come sooner."""
    context = new_context(browser)
    yield context, Watch(context, host.ours)
    context.close()


@pytest.fixture
def context(
    session_context: tuple[BrowserContext, Watch], request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[BrowserContext]:
    """What our page asked of other origins, or complained of, fails the test. Pages opened here are closed after it."""
    context, watch = session_context
    kept = list(context.pages)
    yield context
    failed = request.node.stash.get(FAILED, False)
    for number, page in enumerate(context.pages):
        if failed:
            page.screenshot(path=tmp_path / f"failed-{number}.png")
            print(f"{page.url} looked like {tmp_path}/failed-{number}.png")
        if page not in kept:
            page.close()
    assert watch.take() == []


@pytest.fixture
def open_at(host: Host, context: BrowserContext) -> Open:
    """Opens the page in its host as a link with this state does."""
    return lambda expected="ready", **state: open_page(host, context, expected, state)


@pytest.fixture(scope="session")
def lasting(host: Host, session_context: tuple[BrowserContext, Watch]) -> Iterator[Viewer]:
    viewer = open_page(host, session_context[0], "ready", START)
    yield viewer
    viewer.page.close()


@pytest.fixture
def viewer(lasting: Viewer, host: Host, context: BrowserContext) -> Viewer:
    """The largest program of a run, on a page that lasts: each test finds it as an address says that was pasted in."""
    lasting.go(host.address(START))
    lasting.picture()
    return lasting


@pytest.fixture
def go_to(viewer: Viewer, host: Host) -> Open:
    """Brings that page to another state."""

    def go(expected: str = "ready", **state: str) -> Viewer:
        viewer.go(host.address(state), expected)
        return viewer

    return go


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Empty, in a context of its own."""
    context = new_context(browser)
    yield context.new_page()
    context.close()
