"""A server for the page alone: threaded, on localhost."""

from __future__ import annotations

import logging
import socket
import webbrowser
from collections.abc import Iterable
from typing import TYPE_CHECKING

from werkzeug.serving import WSGIRequestHandler, make_server

from tb_memplugin.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.api import MemoryApp

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class QuietHandler(WSGIRequestHandler):
    """A handler that logs no requests, so that the URL stays visible in the terminal."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None: ...


def serve(root: str, host: str, port: int, open_browser: bool = False) -> None:
    """Print the URL, and serve until interrupted. InputError if the port is not available."""
    catalog = Catalog(root)
    try:
        catalog.runs()
    except InputError as error:
        # Profiles may be written later.
        print(f"warning: {error}", flush=True)
    try:
        server = make_server(
            host, port, below_any_prefix(MemoryApp(catalog)), threaded=True, request_handler=QuietHandler
        )
    except (OSError, SystemExit, OverflowError) as error:
        raise InputError("Cannot listen", f"{host}:{port}", f"choose another --port or --host ({error})") from error
    url = _url(host, server.server_port)
    print(f"tb-memplugin serves {root} at {url} (Ctrl+C ends it)", flush=True)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    if open_browser:
        webbrowser.open(url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


def below_any_prefix(app: MemoryApp) -> WSGIApplication:
    """Accept any path prefix: some proxies leave theirs on, so the text before a known path is dropped."""

    def passing(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        known = {"", *app.paths()}
        path = environ.get("PATH_INFO", "")
        prefixes = (path[:at] for at, char in enumerate(path) if char == "/")
        prefix = next((prefix for prefix in prefixes if path[len(prefix) + 1 :] in known), "")
        return app.mounted(prefix)(environ, start_response)

    return passing


def _url(host: str, port: int) -> str:
    if host in ("", "0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
