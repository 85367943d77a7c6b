"""XProf's own server, with our page in place of its Memory Viewer.

The only replaced function is `xprof.server.make_wsgi_app(plugin)`: its result is wrapped in XProfApp. XProf's other
tools stay unchanged, and our routes answer even where XProf fails.
"""

from __future__ import annotations

import gzip
import inspect
import json
import logging
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from werkzeug.utils import redirect
from werkzeug.wrappers import Request, Response

from tb_memplugin.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.page_request import PageRequest
from tb_memplugin.hosts.page_script import with_script
from tb_memplugin.hosts.responses import finish, json_response
from tb_memplugin.hosts.serving.lanes import Lane, PostponedError, lane_of
from tb_memplugin.hosts.xprof_answers import Answers, Elsewhere

if TYPE_CHECKING:
    from types import ModuleType

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

logger = logging.getLogger(__name__)

# The versions of the contract tests; others get a link instead of the overlay.
TESTED = ("2.24.", "2.25.")
PREFIX = "/data/plugin/profile"
TAGS = ("memory_viewer", "memory_profile")
LISTS = ("/runs", "/run_tools", "/hosts", "/module_list")


def install(server: ModuleType) -> None:
    """Add our page to every app that `xprof.server` makes. InputError if its interface is unknown."""
    stock = getattr(server, "make_wsgi_app", None)
    if stock is None or list(inspect.signature(stock).parameters) != ["plugin"]:
        raise InputError(
            "Unknown interface of XProf",
            version(),
            "use tb-memplugin serve, or pip install 'xprof>=2.24,<2.26'",
        )
    if not version().startswith(TESTED):
        print(
            f"warning: tb-memplugin was not tested with XProf {version()}: its Memory Viewer stays unchanged "
            "and links to ours",
            file=sys.stderr,
        )

    def make_wsgi_app(plugin: Any) -> WSGIApplication:
        return XProfApp(stock(plugin), plugin.logdir or "", tested=version().startswith(TESTED))

    server.make_wsgi_app = make_wsgi_app  # type: ignore[attr-defined]


def version() -> str:
    from xprof.version import __version__

    return str(__version__)


class XProfApp:
    """The stock app, with our routes below `memory/` and our answers to its memory tools."""

    def __init__(self, stock: WSGIApplication, root: str, *, tested: bool) -> None:
        catalog = Catalog({"": root} if root else {})
        self._stock = stock
        self._memory = MemoryApp(catalog).mounted("/memory")
        self._answers = Answers(catalog)
        self._script = f'<script src="memory/xprof.js" data-tested="{tested}"></script>'
        self._tested = tested

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        below = environ.get("PATH_INFO", "").removeprefix(PREFIX)
        if below.startswith("/memory/"):
            return self._memory({**environ, "PATH_INFO": below}, start_response)
        if lane_of(environ) in (Lane.QUICK, Lane.SEARCH):
            raise PostponedError  # XProf converts files in its requests
        return self._answer(PageRequest(environ), below)(environ, start_response)

    def _answer(self, request: Request, below: str) -> WSGIApplication:
        if request.method not in ("GET", "HEAD"):
            return self._stock
        if self._tested and below == "/data" and request.args.get("tag") in TAGS:
            return self._data(request)
        if self._tested and below in LISTS:
            return self._list(request, below)
        if below in ("", "/", "/index.html", "/local") or (below not in (*LISTS, "/data") and "." not in below):
            return self._page(request)
        return self._stock

    def _page(self, request: Request) -> Response:
        """Return XProf's page with our script, which shows our page over the tool's."""
        return with_script(self._stock, request.environ, self._script)

    def _data(self, request: Request) -> WSGIApplication:
        """Answer XProf's memory tools with our numbers. Their timeline link leads to our timeline."""
        try:
            if request.args.get("tag") == "memory_profile":
                return finish(request, self._answers.memory_profile(request.args))
            if request.args.get("view_memory_allocation_timeline"):
                return finish(request, redirect(self._answers.timeline(request.args)))
            return finish(request, self._answers.memory_viewer(request.args))
        except InputError as error:
            return finish(request, Response(str(error), 404, content_type="text/plain; charset=utf-8"))
        except Elsewhere:
            return self._stock
        except Exception:
            logger.exception("Answering %s failed; XProf's own answer is sent", request.full_path)
            return self._stock

    def _list(self, request: Request, route: str) -> WSGIApplication:
        """Return XProf's list, or ours where XProf fails or its list is empty."""
        try:
            stock = Response.from_app(self._stock, request.environ, buffered=True)
            body = stock.get_data()
            body = gzip.decompress(body) if stock.headers.get("Content-Encoding") == "gzip" else body
            if stock.status_code == 200 and body not in (b"", b"[]"):
                return finish(request, _with_memory_tools(body)) if route == "/run_tools" else stock
        except Exception:
            logger.exception("XProf failed to answer %s; tb-memplugin answers", request.full_path)
            stock = Response("No Data", 500, content_type="text/plain")
        try:
            return finish(request, self._answers.listed(route, request.args))
        except (InputError, Elsewhere):
            return stock


def _with_memory_tools(body: bytes) -> Response:
    """Return XProf's list of a run's tools with both of ours. Without one of them XProf leaves our page for another."""
    tools = json.loads(body)
    return json_response([*tools, *(tag for tag in TAGS if tag not in tools)])
