"""The WSGI app that every host mounts: the page and the data it asks for.

It knows nothing of who serves it: it looks at the path below its mount, and the page's own URLs are relative.
All routes answer GET and HEAD, with an ETag, and compressed where the client can read that.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request, Response

from tb_memplugin.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts import static
from tb_memplugin.views import leaks, memory_profile, memory_viewer
from tb_memplugin.views.summary import summary

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

logger = logging.getLogger(__name__)

JSON = "application/json"
TABLES = "application/octet-stream"
# Level 1 takes a third of the time of the default for a tenth more bytes, and most hosts are on loopback.
GZIP_LEVEL = 1
GZIP_FROM_BYTES = 1024
MAX_BUCKETS = 8192  # twice the pixels of a wide screen; the page asks for one bucket per pixel


class BadParameter(InputError):
    """The caller's mistake, as opposed to something that is not there."""


class MemoryApp:
    """Answers about one logdir."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._routes: dict[str, Callable[[Request], Response]] = {
            "api/runs": self._runs,
            "api/recordings": self._recordings,
            "api/memory_viewer": self._memory_viewer,
            "api/memory_profile": self._memory_profile,
            "api/rows": self._rows,
            "api/usage": self._usage,
            "api/details": self._details,
            "api/leaks": self._leaks,
        }

    def paths(self) -> list[str]:
        """Everything there is below the mount, for hosts that route by whole paths."""
        return [*self._routes, *static.names()]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        return finished(request, self._answer(request))(environ, start_response)

    def mounted(self, mount: str) -> WSGIApplication:
        """This app for a host that leaves its own path, `mount`, in PATH_INFO."""

        def below(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            path = environ.get("PATH_INFO", "").removeprefix(mount)
            return self({**environ, "PATH_INFO": path}, start_response)

        return below

    def _answer(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            refusal = error_response(405, InputError("Method not allowed", request.method, "use GET"))
            refusal.headers["Allow"] = "GET, HEAD"
            return refusal
        path = request.path.lstrip("/") or "index.html"
        try:
            if (route := self._routes.get(path)) is not None:
                return route(request)
            if path in static.names():
                return static.response(path)
            return error_response(404, InputError("No such page", path, "open index.html"))
        except BadParameter as error:
            return error_response(400, error)
        except InputError as error:
            return error_response(404, error)
        except Exception:
            logger.exception("Answering %s", request.full_path)
            return error_response(
                500, InputError("Internal error", path, "the server's log says why; other views still work")
            )

    def _runs(self, request: Request) -> Response:
        message = None
        try:
            runs = self._catalog.runs()
        except InputError as error:  # an empty logdir is a state of the page, not a failure of it
            runs, message = [], str(error)
        listed = [{"name": run.name, "hosts": [file.host for file in run.files]} for run in runs]
        return json_response({"logdir": self._catalog.logdir, "runs": listed, "message": message})

    def _recordings(self, request: Request) -> Response:
        listing = self._catalog.listing(_required(request, "run"), request.args.get("host") or None)
        problems = [{"file": problem.file, "text": problem.text} for problem in listing.problems]
        return json_response({"recordings": [*map(summary, listing.recordings)], "problems": problems})

    def _memory_viewer(self, request: Request) -> Response:
        recording = self._catalog.recording(_required(request, "id"))
        return Response(memory_viewer.first_view(recording), content_type=TABLES)

    def _memory_profile(self, request: Request) -> Response:
        recording = self._catalog.recording(_required(request, "id"))
        return Response(memory_profile.first_view(recording), content_type=TABLES)

    def _rows(self, request: Request) -> Response:
        recording = self._catalog.recording(_required(request, "id"))
        return Response(memory_viewer.rows(recording.complete), content_type=TABLES)

    def _usage(self, request: Request) -> Response:
        recording = self._catalog.recording(_required(request, "id"))
        start = _integer(request, "from", -1, recording.length, default=0)
        end = _integer(request, "to", start, recording.length, default=recording.length)
        buckets = _integer(request, "buckets", 1, MAX_BUCKETS, default=1024)
        return Response(memory_viewer.usage(recording, start, end, buckets), content_type=TABLES)

    def _details(self, request: Request) -> Response:
        recording_id = _required(request, "id")
        recording = self._catalog.recording(recording_id).complete
        row = _integer(request, "row", 0, len(recording.allocations) - 1)
        details = memory_viewer.details(recording, row)
        if recording.kind == "allocator":
            programs = [beside for beside in self._catalog.beside(recording_id) if beside.kind == "program"]
            details["planned"] = memory_profile.planned(recording, row, programs)
        return json_response(details)

    def _leaks(self, request: Request) -> Response:
        return json_response(leaks.findings(self._catalog.recording(_required(request, "id")).complete))


def json_response(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, allow_nan=False), status, content_type=JSON)


def error_response(status: int, error: InputError) -> Response:
    content = {"what": error.what, "where": error.where, "remedy": error.remedy}
    return json_response({"error": content}, status)


def finished(request: Request, response: Response) -> Response:
    """What every answer of ours has: an ETag, no sniffing, and gzip where the client reads it."""
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-cache"  # keep it, but ask: a file may have been written again
    response.headers["Vary"] = "Accept-Encoding"
    if response.status_code != 200:
        return response
    body = response.get_data()
    response.set_etag(blake2b(body, digest_size=16).hexdigest(), weak=True)
    response.make_conditional(request.environ)
    wanted = request.accept_encodings.quality("gzip") > 0
    if wanted and response.status_code == 200 and len(body) >= GZIP_FROM_BYTES:
        response.set_data(gzip.compress(body, GZIP_LEVEL, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response


def _required(request: Request, name: str) -> str:
    value = request.args.get(name)
    if value is None:
        raise BadParameter("Parameter missing", name, "add it to the query")
    return value


def _integer(request: Request, name: str, low: int, high: int, default: int | None = None) -> int:
    text = request.args.get(name)
    if text is None and default is not None:
        return default
    try:
        value = int(_required(request, name))
    except ValueError:
        raise BadParameter("Not a whole number", f"{name}={text}", f"give one from {low} to {high}") from None
    if not low <= value <= high:
        raise BadParameter("Out of range", f"{name}={value}", f"give one from {low} to {high}")
    return value
