"""A server for the page alone, on localhost."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Collection, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.http_messages import Headers, with_headers
from tb_memplugin.hosts.serving.addresses import HostNames, ProxiedNames, checked, listen, url_of
from tb_memplugin.hosts.serving.server import serve as serve_app
from tb_memplugin.logdir import has_runs
from tb_memplugin.questions.asking.source import Reads
from tb_memplugin.source_files import checked_roots

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# A notebook's own proxy makes the page a part of its origin. Without one, a browser on this machine reaches the port.
# Colab shows outputs in frames of another origin.
NOTEBOOKS = "http://localhost:* http://127.0.0.1:* https://localhost:* https://*.googleusercontent.com"
ALLOW = "if you know this name, start the server with --allowed-host {name}"


def serve(
    root: str,
    host: str,
    port: int,
    open_browser: bool = False,
    allowed: Collection[str] = (),
    source_roots: Collection[str] = (),
    in_notebook: bool = False,
) -> None:
    """Print the URL, and serve until interrupted. InputError if the port is not available, or a source root is not.

    `in_notebook`: the page may be in a frame of a notebook, and the server ends when its standard input is closed.
    """
    sources = checked_roots(source_roots)
    catalog = Catalog(root)
    # Both calls import most of the package, which the first request should not wait for.
    catalog.load_readers()
    page = MemoryApp(catalog, sources)
    listening = listen([host], port)
    if not has_runs(root):  # stops at the first run, unlike catalog.runs()
        try:
            catalog.runs()
        except InputError as error:
            # Profiles may be written later.
            print(f"warning: {error}", flush=True)
    below = BelowAnyPrefix(page)
    app = checked(below, (ProxiedNames() if in_notebook else HostNames(host, allowed)).accepts, ALLOW)
    if in_notebook:
        app = with_headers(app, _framed_by_notebooks)
        threading.Thread(target=end_with_input, daemon=True).start()
    url = url_of(host, listening)

    def ready() -> None:
        print(f"tb-memplugin serves {root} at {url} (Ctrl+C ends it)", flush=True)
        if open_browser:
            webbrowser.open(url)

    serve_app(app, listening, ready, below.reads)


class BelowAnyPrefix:
    """The page below any path prefix: some proxies leave theirs on, so the text before a known path is dropped."""

    def __init__(self, app: MemoryApp) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return self._app(self._without_prefix(environ), start_response)

    def reads(self, environ: WSGIEnvironment) -> Reads | Future[None]:
        """Return what a request reads."""
        return self._app.reads(self._without_prefix(environ))

    def _without_prefix(self, environ: WSGIEnvironment) -> WSGIEnvironment:
        path = environ.get("PATH_INFO", "")
        known = [end for end in ("", *self._app.paths()) if path.endswith(f"/{end}")]
        prefix = path.removesuffix(f"/{max(known, key=len)}") if known else ""
        return {**environ, "PATH_INFO": path.removeprefix(prefix)}


def _framed_by_notebooks(headers: Headers) -> Headers:
    """Let notebooks show the page in a frame."""
    return [(name, value.replace("frame-ancestors", f"frame-ancestors {NOTEBOOKS}")) for name, value in headers]


def end_with_input() -> None:
    """End this process when standard input is closed, as it is when the notebook's kernel has ended in any way."""
    while sys.stdin.buffer.read(1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
