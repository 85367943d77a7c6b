"""The WSGI app that every host mounts: the page and its data.

It does not depend on its host: it reads the path below its mount, and the page's own URLs are relative. Routes answer
GET and HEAD with an ETag, compressed where the client accepts gzip. POST routes accept requests from our own page only.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request, Response

from tb_memplugin.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts import static
from tb_memplugin.hosts.page_request import PageRequest
from tb_memplugin.hosts.request_body import NotAccepted
from tb_memplugin.hosts.responses import Finished, error_response, finish
from tb_memplugin.hosts.routes import Routes
from tb_memplugin.hosts.serving.lanes import PostponedError
from tb_memplugin.source_files import SourceFiles, roots_of_environment
from tb_memplugin.views.endpoints.inputs import BadParameter

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

logger = logging.getLogger(__name__)


class MemoryApp:
    """The app for one logdir. Source code is read below it and below `source_roots`, which are paths without links."""

    def __init__(self, catalog: Catalog, source_roots: Sequence[str] = ()) -> None:
        logdirs = [os.path.realpath(root) for root in catalog.local_roots()]
        self._routes = Routes(catalog, SourceFiles([*source_roots, *roots_of_environment(), *logdirs]))

    def paths(self) -> frozenset[str]:
        """Return all paths below the mount, for hosts that route by complete paths."""
        return self._routes.paths() | static.names()

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
        allowed = self._routes.methods(path)
        if request.method not in allowed:
            response = error_response(405, InputError("Method not allowed", request.method, f"use {allowed[0]}"))
            response.headers["Allow"] = ", ".join(allowed)
            return response
        try:
            if path in self._routes.paths():
                return self._routes.answer(path, request)
            if path in static.names():
                return static.response(path)
            return error_response(404, InputError("No such page", path, "open index.html"))
        except PostponedError:
            raise
        except NotAccepted as error:
            return error_response(error.status, error)
        except BadParameter as error:
            return error_response(400, error)
        except InputError as error:
            return error_response(404, error)
        except Exception:
            logger.exception("Answering %s", request.full_path)
            return error_response(
                500, InputError("Internal error", path, "see the server's log; other views still work")
            )
