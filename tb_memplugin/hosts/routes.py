"""Routes below api/: one for each declared endpoint (views/endpoints), answered from one logdir's catalog."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from tb_memplugin.catalog import Catalog
from tb_memplugin.hosts import report_download
from tb_memplugin.hosts.answer_cache import AnswerCache, AnswerKey
from tb_memplugin.hosts.assumed_capacity import MAX_CAPACITY, PARAMETER, AssumedCapacity
from tb_memplugin.hosts.catalog_source import CatalogSource
from tb_memplugin.hosts.report_download import ReportDownload
from tb_memplugin.hosts.request_body import read_body
from tb_memplugin.hosts.responses import Finished, finished
from tb_memplugin.hosts.serving.lanes import Lane, lane_of
from tb_memplugin.source_files import SourceFiles
from tb_memplugin.views.endpoints.endpoint import endpoints
from tb_memplugin.views.endpoints.inputs import Call, OptionalInteger
from tb_memplugin.views.endpoints.source import Source

PREFIX = "api/"
CAPACITY = OptionalInteger(PARAMETER, 1, MAX_CAPACITY)


class Routes:
    """Answers requests. InputError where nothing has the requested name, BadParameter where a parameter is wrong."""

    def __init__(self, catalog: Catalog, files: SourceFiles) -> None:
        self._source = CatalogSource(catalog, files)
        self._reports = ReportDownload(self._source)
        self._endpoints = endpoints()
        self._paths = frozenset({report_download.PATH, *(PREFIX + route for route in self._endpoints)})
        self._cache = AnswerCache()

    def paths(self) -> frozenset[str]:
        """Return all routes, relative to the mount."""
        return self._paths

    def methods(self, path: str) -> tuple[str, ...]:
        """Return the HTTP methods that a path accepts; GET and HEAD where it is no route."""
        endpoint = self._endpoints.get(path.removeprefix(PREFIX))
        return ("POST",) if path.startswith(PREFIX) and endpoint and endpoint.post else ("GET", "HEAD")

    def answer(self, path: str, request: Request) -> Finished | Response:
        """Answer a request for one of `paths`."""
        if path == report_download.PATH:
            return self._reports.response(request)
        endpoint = self._endpoints[path.removeprefix(PREFIX)]
        query = request.args.to_dict()
        if endpoint.post:
            return finished(endpoint.answer(Call(query, self._source, read_body(request))))
        if endpoint.live:
            return finished(endpoint.answer(Call(query, self._source)))
        # Parameters that the endpoint does not read would make other answers of the same.
        query = {name: query[name] for name in sorted(p.name for p in endpoint.parameters) if name in query}
        key: AnswerKey = (path, *(part for item in query.items() for part in item))
        source: Source = self._source
        capacity = CAPACITY.read(Call(request.args.to_dict(), source), ())
        if capacity is not None:
            source, key = AssumedCapacity(source, capacity), (*key, PARAMETER, str(capacity))
        lane = lane_of(request.environ)
        if lane in (Lane.QUICK, Lane.SEARCH):
            return self._cache.answer_kept(key, source, lane is Lane.SEARCH)
        may_wait = lane is None  # other servers have a thread for each connection

        def make(source: Source) -> Finished:
            return finished(endpoint.answer(Call(query, source)))

        return self._cache.answer(key, source, make, may_wait)
