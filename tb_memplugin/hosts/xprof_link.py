"""Our script in XProf's page, in its own server and in TensorBoard, where it links XProf's tab to ours.

TensorBoard makes the routes of all plugins once all of them are loaded, so XProf's are wrapped where it makes them.
"""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def with_script(stock: WSGIApplication, environ: WSGIEnvironment, script: str) -> Response:
    """Return the answer of `stock`, with a script element at the end of the head if it is a page."""
    page = Response.from_app(stock, environ)
    if page.mimetype == "text/html" and page.status_code == 200:
        compressed = page.headers.pop("Content-Encoding", None) == "gzip"
        html = gzip.decompress(page.get_data()) if compressed else page.get_data()
        page.set_data(html.replace(b"</head>", script.encode() + b"</head>", 1))
    return page


logger = logging.getLogger(__name__)

# XProf's routes of its page, and of the places in it. Paths are relative to XProf's own.
PAGES = ("/", "/index.html", "/local")
SCRIPT = '<script src="../memory/xprof.js" data-host="tensorboard"></script>'


def add_link() -> None:
    """Let the page of XProf's plugin link to ours. A failure is logged, and XProf's page has no link."""
    if find_spec("xprof") is None:
        return
    try:
        from xprof.profile_plugin import ProfilePlugin

        stock = ProfilePlugin.get_plugin_apps
        if getattr(stock, "links_to_memory", False):
            return

        def get_plugin_apps(plugin: Any) -> Mapping[str, WSGIApplication]:
            apps: Mapping[str, WSGIApplication] = stock(plugin)
            return {route: _linked(app) if route in PAGES else app for route, app in apps.items()}

        get_plugin_apps.links_to_memory = True  # type: ignore[attr-defined]
        ProfilePlugin.get_plugin_apps = get_plugin_apps
    except Exception:
        logger.exception("XProf's page in TensorBoard has no link to Memory")


def _linked(app: WSGIApplication) -> WSGIApplication:
    def linked(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return with_script(app, environ, SCRIPT)(environ, start_response)

    return linked
