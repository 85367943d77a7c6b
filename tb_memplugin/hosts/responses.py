"""Responses: JSON, tables and errors, and the headers that all of them have."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from werkzeug.wrappers import Request, Response

from tb_memplugin.errors import InputError
from tb_memplugin.model.cached_property import cached_property

JSON = "application/json"
TABLES = "application/octet-stream"
# Level 1 takes a third of the time of the default for a tenth more bytes, and most hosts are on loopback.
GZIP_LEVEL = 1
GZIP_FROM_BYTES = 1024
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",  # revalidate: a file may have changed
    "Vary": "Accept-Encoding",
}


class Finished:
    """An answer with status 200 that can be sent any number of times."""

    def __init__(self, body: bytes, headers: Sequence[tuple[str, str]]) -> None:
        self._body = body
        self._headers = [*headers, *HEADERS.items()]

    @property
    def body_bytes(self) -> int:
        return len(self._body)

    @cached_property
    def nbytes(self) -> int:
        """Return the size with the compressed form, which is made if it was not."""
        return len(self._body) + (len(self._packed) if len(self._body) >= GZIP_FROM_BYTES else 0)

    def response(self, request: Request) -> Response:
        """Return the response to one request: compressed where the client accepts gzip, 304 where it has the answer."""
        packed = len(self._body) >= GZIP_FROM_BYTES and request.accept_encodings.quality("gzip") > 0
        response = Response(self._packed if packed else self._body, headers=self._headers)
        response.headers["ETag"] = self._etag
        if request.method in ("GET", "HEAD") and request.if_none_match.contains_weak(self._tag):
            response.status_code = 304
            response.set_data(b"")
            for name in ("Content-Type", "Content-Length"):
                response.headers.remove(name)
        elif packed:
            response.headers["Content-Encoding"] = "gzip"
        return response

    @cached_property
    def _tag(self) -> str:
        return blake2b(self._body, digest_size=16).hexdigest()

    @property
    def _etag(self) -> str:
        return f'W/"{self._tag}"'

    @cached_property
    def _packed(self) -> bytes:
        return gzip.compress(self._body, GZIP_LEVEL, mtime=0)


def finished(answer: bytes | Any) -> Finished:
    """Return the answer of an endpoint: tables as they are, other values as JSON."""
    if isinstance(answer, bytes):
        return Finished(answer, [("Content-Type", TABLES)])
    return Finished(json.dumps(answer, allow_nan=False).encode(), [("Content-Type", JSON)])


def json_response(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, allow_nan=False), status, content_type=JSON)


def error_response(status: int, error: InputError) -> Response:
    content = {"what": error.what, "where": error.where, "remedy": error.remedy}
    return json_response({"error": content}, status)


def finish(request: Request, response: Response) -> Response:
    """Add the headers of every response, and compress it where the client accepts gzip and it is not streamed."""
    if response.status_code == 200 and not response.is_streamed:
        headers = [(name, value) for name, value in response.headers if name != "Content-Length"]
        return Finished(response.get_data(), headers).response(request)
    response.headers.update(HEADERS)
    return response
