"""XProf's own server, with our page in place of its Memory Viewer.

The only replaced function is `xprof.server.make_wsgi_app(plugin)`: its result is wrapped in XProfApp. XProf's other
tools stay unchanged, and our routes answer even where XProf fails.

The parameters of its requests are XProf's: `run`, or `session_path` (the folder of one run), or `run_path` (a folder of
runs) with `run`; `host`; `module_name`, or `program_id`; `memory_space`. `use_saved_result` is ignored, since nothing
is saved.
"""

from __future__ import annotations

import gzip
import inspect
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from werkzeug.datastructures import MultiDict
from werkzeug.utils import redirect
from werkzeug.wrappers import Request, Response

from tb_memplugin import logdir
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.http_messages import PageRequest, finish, json_response
from tb_memplugin.hosts.xprof_link import with_script
from tb_memplugin.logdir import Run
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.source import Reads
from tb_memplugin.questions.xprof import memory_profile, memory_viewer

if TYPE_CHECKING:
    from types import ModuleType

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

Parameters = MultiDict[str, str]

# XProf lists a run's tools in a file that it writes next to the profile. It lists none where it cannot write, or where
# the first host's file is damaged. The tools below open without that file.
TOOLS = (
    "overview_page",
    "trace_viewer",
    "op_profile",
    "input_pipeline_analyzer",
    "kernel_stats",
    "memory_profile",
    "memory_viewer",
    "roofline_model",
    "framework_op_stats",
    "hlo_stats",
)


class Elsewhere(Exception):
    """A request that only XProf can answer: for a folder outside the logdir, or without files that we can read."""


class Answers:
    """Answers about the runs of one logdir. InputError for an unknown run, host or module."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def listed(self, route: str, parameters: Parameters) -> Response:
        """Answer /runs, /run_tools, /hosts and /module_list in XProf's format."""
        if route == "/runs":
            # A pasted text has no profile, so XProf's tools cannot open it.
            return json_response([run.name for run in self._catalog.runs() if run.folder])
        run = self._run(parameters)
        if route == "/run_tools":
            return json_response(TOOLS)
        if route == "/hosts":
            return json_response([{"hostname": file.host} for file in run.files if file.path.endswith(".pb")])
        programs = self._programs(run)
        return Response(",".join(sorted({program.title for program in programs})), content_type="text/plain")

    def memory_viewer(self, parameters: Parameters) -> Response:
        """Answer `/data?tag=memory_viewer` in XProf's JSON."""
        run = self._run(parameters)
        module = self._module(run, parameters)
        return json_response(memory_viewer.memory_viewer(module, memory_space(parameters)))

    def memory_profile(self, parameters: Parameters) -> Response:
        """Answer `/data?tag=memory_profile` in XProf's JSON, for the requested host or that with the largest peak."""
        host = parameters.get("host")
        listing = self._catalog.listing_of_run(self._run(parameters), None if host in (None, "", "ALL_HOSTS") else host)
        allocators = [recording for recording in listing.recordings if recording.kind.runs_programs]
        if not allocators and listing.problems:
            raise Elsewhere
        of_host = [recording for recording in allocators if recording.host == allocators[0].host]
        return json_response(memory_profile.memory_profile(of_host))

    def timeline(self, parameters: Parameters) -> str:
        """Return the URL of XProf's page with our timeline, for XProf's timeline link, relative to `/data`."""
        run = self._run(parameters)
        host, module = parameters.get("host"), parameters.get("module_name")
        if not module and parameters.get("program_id"):
            module = self._module(run, parameters)[0].title
        # XProf needs the path to find the run again.
        folder = {name: parameters.get(name) for name in ("session_path", "run_path")}
        page = {"tag": "memory_viewer", "run": run.name, "host": host, "moduleName": module, **folder}
        place = {"tab": "memory_viewer", "run": run.name, "host": host, "module": module}
        state = {**place, "space": str(memory_space(parameters)), "full": "true"}
        return f"./?{_query(page)}#{_query(state)}"

    def _run(self, parameters: Parameters) -> Run:
        name = parameters.get("run", "")
        session, parent = parameters.get("session_path"), parameters.get("run_path")
        if session or parent:
            path = session or os.path.join(str(parent), name)
            if os.pardir in path.split("/"):
                raise InputError("Not a plain path", path, "name the folder without `..`")
            remote = logdir.is_remote(path)
            folder = path.partition("://")[2].rstrip("/") if remote else os.path.realpath(path)
            try:
                found = self._catalog.find(lambda run: run.folder == folder)
            except InputError:  # no logdir, or nothing in it
                found = []
            if not found:
                raise Elsewhere
        elif not (found := self._catalog.find(lambda run: run.name == name)):
            raise InputError("Unknown run", name, "choose one that /runs lists")
        return found[0]

    def _programs(self, run: Run, host: str | None = None) -> list[Recording]:
        recordings = self._catalog.listing_of_run(run, host).recordings
        return [recording for recording in recordings if recording.program is not None]

    def _module(self, run: Run, parameters: Parameters) -> list[Recording]:
        """Return one program's recordings, one per memory space, of the requested host or the largest."""
        name, number = parameters.get("module_name"), parameters.get("program_id")
        requested = parameters.get("host")
        for host in (None,) if requested in (None, "", "ALL_HOSTS") else (requested, None):
            for program in self._programs(run, host):
                # The number in `jit_step (12)` is that of a file.
                if program.title == name if name else re.search(rf"\S\({re.escape(number or '')}\)$", program.title):
                    same = self._programs(run, program.host)
                    return [recording for recording in same if recording.title == program.title]
        raise InputError("Unknown module", name or number or "(none)", "choose one that /module_list lists")


def _query(values: Mapping[str, str | None]) -> str:
    return urlencode({name: value for name, value in values.items() if value}, quote_via=quote)


def memory_space(parameters: Parameters) -> int:
    """Return the buffer color, or 0 if it is not a number, as XProf does."""
    try:
        return int(parameters.get("memory_space", "0"))
    except ValueError:
        return 0


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
            "Unknown interface of XProf", version(), "use tb-memplugin serve, or pip install 'xprof>=2.24,<2.26'"
        )
    tested = version().startswith(TESTED)
    if not tested:
        print(
            f"warning: tb-memplugin was not tested with XProf {version()}: its Memory Viewer stays unchanged "
            "and links to ours",
            file=sys.stderr,
        )

    def make_wsgi_app(plugin: Any) -> WSGIApplication:
        return XProfApp(stock(plugin), plugin.logdir or "", tested=tested)

    server.make_wsgi_app = make_wsgi_app  # type: ignore[attr-defined]


def version() -> str:
    from xprof.version import __version__

    return str(__version__)


class XProfApp:
    """The stock app, with our routes below `memory/` and our answers to its memory tools."""

    def __init__(self, stock: WSGIApplication, root: str, *, tested: bool) -> None:
        catalog = Catalog({"": root} if root else {})
        self._stock = stock
        self._memory = MemoryApp(catalog)
        self._answers = Answers(catalog)
        self._script = f'<script src="memory/xprof.js" data-tested="{tested}"></script>'
        self._tested = tested

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        below = environ.get("PATH_INFO", "").removeprefix(PREFIX)
        if below.startswith("/memory/"):
            return self._memory({**environ, "PATH_INFO": below.removeprefix("/memory")}, start_response)
        return self._answer(PageRequest(environ), below)(environ, start_response)

    def reads(self, environ: WSGIEnvironment) -> Reads | Future[None]:
        """Return what a request reads. XProf converts whole files for its tools."""
        below = environ.get("PATH_INFO", "").removeprefix(PREFIX)
        if not below.startswith("/memory/"):
            return Reads.LARGE_FILES if below == "/data" else Reads.SMALL_FILES
        return self._memory.reads({**environ, "PATH_INFO": below.removeprefix("/memory")})

    def _answer(self, request: Request, below: str) -> WSGIApplication:
        if request.method not in ("GET", "HEAD"):
            return self._stock
        if self._tested and below == "/data" and request.args.get("tag") in TAGS:
            return self._data(request)
        if self._tested and below in LISTS:
            return self._list(request, below)
        if below in ("", "/", "/index.html", "/local") or (below not in (*LISTS, "/data") and "." not in below):
            # Our script shows our page over the tool's.
            return with_script(self._stock, request.environ, self._script)
        return self._stock

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
