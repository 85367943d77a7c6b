"""Routes below api/: one for each declared endpoint (views/endpoints), answered from one logdir's catalog."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from tb_memplugin.catalog import Catalog
from tb_memplugin.hosts.catalog_source import CatalogSource
from tb_memplugin.hosts.request_body import read_body
from tb_memplugin.hosts.responses import json_response, tables_response
from tb_memplugin.views.endpoints.endpoint import endpoints
from tb_memplugin.views.endpoints.inputs import Call

PREFIX = "api/"


class Routes:
    """Answers requests. InputError where nothing has the requested name, BadParameter where a parameter is wrong."""

    def __init__(self, catalog: Catalog) -> None:
        self._source = CatalogSource(catalog)
        self._endpoints = endpoints()

    def paths(self) -> list[str]:
        """Return all routes, relative to the mount."""
        return [PREFIX + route for route in self._endpoints]

    def methods(self, path: str) -> tuple[str, ...]:
        """Return the HTTP methods that a path accepts; GET and HEAD where it is no route."""
        endpoint = self._endpoints.get(path.removeprefix(PREFIX))
        return ("POST",) if path.startswith(PREFIX) and endpoint and endpoint.post else ("GET", "HEAD")

    def answer(self, path: str, request: Request) -> Response:
        """Answer a request for one of `paths`."""
        endpoint = self._endpoints[path.removeprefix(PREFIX)]
        body = read_body(request) if endpoint.post else b""
        answer = endpoint.answer(Call(request.args.to_dict(), self._source, body))
        return tables_response(answer) if isinstance(answer, bytes) else json_response(answer)
