"""The WSGI app that every host mounts: the page and its data.

It does not depend on its host: it reads the path below its mount, and the page's own URLs are relative. Routes answer
GET and HEAD with an ETag, compressed where the client accepts gzip. POST routes accept requests from our own page only.

Below api/ there is a route for each declared endpoint (questions/asking/endpoint.py), answered from one
logdir's catalog.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request, Response

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts import static
from tb_memplugin.hosts.answer_cache import AnswerCache, AnswerKey
from tb_memplugin.hosts.http_messages import (
    Finished,
    NotAccepted,
    PageRequest,
    error_response,
    finish,
    finished,
    read_body,
)
from tb_memplugin.hosts.report import DOWNLOAD_PATH, ReportDownload
from tb_memplugin.hosts.sources import CAPACITY_PARAMETER, MAX_CAPACITY, catalog_source, with_capacity
from tb_memplugin.questions.asking.endpoint import Endpoint, endpoints
from tb_memplugin.questions.asking.inputs import BadParameter, Call, Integer
from tb_memplugin.questions.asking.source import Reads
from tb_memplugin.source_files import SourceFiles, roots_of_environment

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PREFIX = "api/"
# Above this size, files that are not cached are large. Reading a program of this size takes a second.
SMALL_BYTES = 16 << 20
CAPACITY = Integer(CAPACITY_PARAMETER, 1, MAX_CAPACITY, optional=True)


logger = logging.getLogger(__name__)


class MemoryApp:
    """The app for one logdir. Source code is read below it and below `source_roots`, which are paths without links."""

    def __init__(self, catalog: Catalog, source_roots: Sequence[str] = ()) -> None:
        logdirs = [os.path.realpath(root) for root in catalog.local_roots()]
        self._catalog = catalog
        self._source = catalog_source(catalog, SourceFiles([*source_roots, *roots_of_environment(), *logdirs]))
        self._reports = ReportDownload(self._source)
        self._endpoints = endpoints()
        self._routes = frozenset({DOWNLOAD_PATH, *(PREFIX + route for route in self._endpoints)})
        self._cache = AnswerCache()

    def paths(self) -> frozenset[str]:
        """Return all paths below the mount, for hosts that route by complete paths."""
        return self._routes | static.names()

    def reads(self, environ: WSGIEnvironment) -> Reads | Future[None]:
        """Return what a request reads before it is answered, or a future of another thread that makes its answer."""
        request = PageRequest(environ)
        path = request.path.lstrip("/")
        endpoint = self._endpoint(path)
        if endpoint is None:
            return Reads.LARGE_FILES if path == DOWNLOAD_PATH else Reads.NOTHING
        declared = max((given.reads for given in endpoint.inputs), default=Reads.NOTHING)
        if endpoint.post or endpoint.live:
            return declared
        query, key = _question(endpoint, path, request)
        if (making := self._cache.making(key)) is not None:
            return making
        subjects = [query[name] for name in endpoint.subjects if query.get(name)]
        unread = [self._catalog.unread_bytes(subject) for subject in subjects]
        if sum(size or 0 for size in unread) > SMALL_BYTES:
            return Reads.LARGE_FILES
        if key not in self._cache or any(unread):
            return Reads.LISTING if declared is Reads.LISTING and not subjects else Reads.SMALL_FILES
        return Reads.LISTING if None in unread or not subjects else Reads.NOTHING

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = PageRequest(environ)
        answer = self._answer(request)
        response = answer.response(request) if isinstance(answer, Finished) else finish(request, answer)
        return response(environ, start_response)

    def mounted(self, mount: str) -> WSGIApplication:
        """Return this app for a host that leaves its own path, `mount`, in PATH_INFO."""

        def below(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            path = environ.get("PATH_INFO", "").removeprefix(mount)
            return self({**environ, "PATH_INFO": path}, start_response)

        return below

    def _answer(self, request: Request) -> Finished | Response:
        path = request.path.lstrip("/") or "index.html"
        endpoint = self._endpoint(path)
        allowed = ("POST",) if endpoint is not None and endpoint.post else ("GET", "HEAD")
        if request.method not in allowed:
            response = error_response(405, InputError("Method not allowed", request.method, f"use {allowed[0]}"))
            response.headers["Allow"] = ", ".join(allowed)
            return response
        try:
            if endpoint is not None:
                return self._answer_of(endpoint, path, request)
            if path == DOWNLOAD_PATH:
                return self._reports.response(request)
            if path in static.names():
                return static.response(path)
            return error_response(404, InputError("No such page", path, "open index.html"))
        except NotAccepted as error:
            return error_response(error.status, error)
        except InputError as error:
            return error_response(400 if isinstance(error, BadParameter) else 404, error)
        except Exception:
            logger.exception("Answering %s", request.full_path)
            return error_response(
                500, InputError("Internal error", path, "see the server's log; other views still work")
            )

    def _endpoint(self, path: str) -> Endpoint | None:
        return self._endpoints.get(path.removeprefix(PREFIX)) if path.startswith(PREFIX) else None

    def _answer_of(self, endpoint: Endpoint, path: str, request: Request) -> Finished:
        """Return the answer of an endpoint. InputError where nothing has the requested name."""
        if endpoint.post or endpoint.live:
            body = read_body(request) if endpoint.post else b""
            return finished(endpoint.answer(Call(request.args.to_dict(), self._source, body)))
        query, key = _question(endpoint, path, request)
        source = self._source
        if (capacity := CAPACITY.read(Call(request.args.to_dict(), source), ())) is not None:
            source = with_capacity(source, capacity)
        return self._cache.answer(key, source, lambda source: finished(endpoint.answer(Call(query, source))))


def _question(endpoint: Endpoint, path: str, request: Request) -> tuple[Mapping[str, str], AnswerKey]:
    """Return the parameters that an endpoint reads, as others do not change its answer, and the key of the answer."""
    given = request.args.to_dict()
    query = {name: given[name] for name in sorted(p.name for p in endpoint.parameters) if name in given}
    named = [*query.items(), (CAPACITY_PARAMETER, given.get(CAPACITY_PARAMETER, ""))]
    return query, (path, *(part for item in named for part in item))
