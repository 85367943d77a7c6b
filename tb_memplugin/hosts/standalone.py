"""A server for the page alone, on localhost."""

from __future__ import annotations

import webbrowser
from collections.abc import Collection, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.serving.addresses import HostNames, checked, listen, url_of
from tb_memplugin.hosts.serving.server import serve as serve_app
from tb_memplugin.logdir import has_runs
from tb_memplugin.questions.asking.source import Reads
from tb_memplugin.source_files import checked_roots

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ALLOW = "if you know this name, start the server with --allowed-host {name}"


def serve(
    root: str,
    host: str,
    port: int,
    open_browser: bool = False,
    allowed: Collection[str] = (),
    source_roots: Collection[str] = (),
) -> None:
    """Print the URL, and serve until interrupted. InputError if the port is not available, or a source root is not."""
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
    app = checked(below, HostNames(host, allowed).accepts, ALLOW)
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
