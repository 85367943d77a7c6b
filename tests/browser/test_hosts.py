"""The page behind a path prefix, in an XProf that was started without tb-memplugin, and in odd browsers."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from support.browser.expected import recording
from support.browser.hosts import Host, in_host, open_standalone, open_tensorboard
from support.browser.logs import LARGEST, TRAIN
from support.browser.pages import REBOUND, new_context
from support.browser.viewer import Viewer
from support.browser.watch import Watch
from support.hook_environment import command
from support.servers import DEMO, Server, fetch, free_port, running

from tb_memplugin.questions.kinds.verdict import verdict_text

PREFIX = "some/prefix/"


@contextmanager
def open_proxy(server: Server) -> Iterator[Server]:
    """Start a reverse proxy that serves a server below a path prefix."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix(f"/{PREFIX}")
            if path == self.path:
                self.send_error(404)
                return
            answer = fetch(server.url + path)
            self.send_response(answer.status)
            for name in ("Content-Type", "Content-Security-Policy", "Location"):
                if answer.headers[name]:
                    self.send_header(name, answer.headers[name])
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        yield Server(f"http://127.0.0.1:{proxy.server_port}/{PREFIX}", server.log)
        proxy.shutdown()
        thread.join()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = new_context(browser)
    yield context
    context.close()


def check(host: Host, context: BrowserContext) -> None:
    """Check that the page loads itself, its data, its worker from below the same path."""
    watch = Watch(context, host.ours)
    page = context.new_page()
    page.goto(host.address({"run": TRAIN, "module": LARGEST}))
    viewer = Viewer(page).wait_until_ready()
    assert viewer.headline() == verdict_text(recording(host).meta["verdict"])
    viewer.picture()
    assert watch.take() == []
    assert {url for url in watch.requests if not url.startswith((host.server.url, "data:"))} == set()


def test_standalone_behind_a_proxy(tmp_path: Path, context: BrowserContext) -> None:
    with open_standalone(DEMO, tmp_path) as host, open_proxy(host.server) as server:
        check(Host(host.name, server), context)


def test_tensorboard_below_a_path(tmp_path: Path, context: BrowserContext) -> None:
    with open_tensorboard(DEMO, tmp_path, prefix="tb") as host:
        check(host, context)


def test_plain_xprof_after_the_hook_is_installed(environment: Path, tmp_path: Path, context: BrowserContext) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(DEMO, logs)
    command(environment, "install")
    port, grpc = free_port(), free_port()
    xprof = [str(environment / "xprof"), f"--logdir={logs}", f"--port={port}", f"--grpc_port={grpc}"]
    try:
        with running(xprof, port, tmp_path, ready="data/plugin/profile/version") as server:
            check(Host("xprof", server), context)
    finally:
        command(environment, "remove")


FETCH = "path => fetch(path).then(answer => answer.status)"


def test_a_page_whose_name_was_rebound_reads_nothing(host: Host, page: Page) -> None:
    page.goto(host.server.url)
    assert page.evaluate(FETCH, f"{host.api}runs") == 200
    answer = page.goto(host.server.url.replace("127.0.0.1", REBOUND))
    assert answer is not None
    assert answer.status == (200 if host.name == "tensorboard" else 403)  # TensorBoard's own page is not ours
    assert page.evaluate(FETCH, f"/{host.api}runs") == 403


def test_a_page_of_another_origin_cannot_frame_ours(tmp_path: Path, context: BrowserContext) -> None:
    with open_standalone(DEMO, tmp_path) as host, open_standalone(DEMO, tmp_path) as other:
        page = context.new_page()
        page.goto(f"{host.server.url}api/runs")  # a document without a policy
        blocked = []
        page.on("console", lambda message: blocked.append(message.text))
        page.evaluate(
            "url => document.body.append(Object.assign(document.createElement('iframe'), {src: url}))", other.server.url
        )
        page.wait_for_timeout(500)
        assert any("frame-ancestors" in text for text in blocked)
        page.evaluate(
            "url => document.body.append(Object.assign(document.createElement('iframe'), {src: url}))", host.server.url
        )
        page.frame_locator("iframe >> nth=1").locator("[data-testid]").first.wait_for()


# WebKit says "C" where the system has no locale, and some builds of Chromium "en-US@posix".
@in_host("standalone")
@pytest.mark.parametrize("language", ["C", "en-US@posix"])
def test_the_page_opens_in_a_browser_whose_language_is_none(language: str, host: Host, context: BrowserContext) -> None:
    context.add_init_script(f"Object.defineProperty(Navigator.prototype, 'language', {{get: () => '{language}'}})")
    check(host, context)
