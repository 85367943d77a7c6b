"""Requests and responses: queries of any bytes, bodies of POST requests, and JSON, tables and errors as answers.

Any other site that a user visits could send requests to a server on localhost. So bodies are accepted from our own page
only, and are of limited size. Browsers mark each request with its origin; other programs send no mark.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from werkzeug.exceptions import ClientDisconnected
from werkzeug.wrappers import Request, Response

from tb_memplugin.errors import InputError
from tb_memplugin.model.lazy import cached_property

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

Headers = list[tuple[str, str]]
NOT_ASCII = re.compile(rb"[\x80-\xff]")


class PageRequest(Request):
    """A request whose query is quoted as browsers quote it. Werkzeug raises UnicodeDecodeError for raw bytes."""

    def __init__(self, environ: WSGIEnvironment) -> None:
        super().__init__(environ)
        self.query_string = NOT_ASCII.sub(lambda found: b"%%%02X" % found[0][0], self.query_string)


MAX_BODY_BYTES = 16 << 20  # the same limit as for text files


class NotAccepted(InputError):
    """A body that is rejected with an HTTP status."""

    def __init__(self, status: int, what: str, where: str, remedy: str) -> None:
        super().__init__(what, where, remedy)
        self.status = status


def read_body(request: Request) -> bytes:
    """Return the body. NotAccepted if it comes from another site, is too large, cut short or has no length."""
    if not _from_our_page(request):
        raise sent_by_another_site(request)
    length = request.content_length
    if length is None:
        raise NotAccepted(411, "Unknown length", "Content-Length", "send the text in one piece")
    if length > MAX_BODY_BYTES:
        remedy = f"send the last {MAX_BODY_BYTES >> 20} MiB, or run tb-memplugin explain on the file"
        raise NotAccepted(413, "The text is too large", f"{length} bytes", remedy)
    try:
        return request.get_data(cache=False)
    except ClientDisconnected as error:
        raise NotAccepted(400, "The text is shorter than its length", f"{length} bytes", "send it again") from error


def sent_by_another_site(request: Request) -> NotAccepted:
    return NotAccepted(
        403, "Sent by another site", request.headers.get("Origin", "unknown"), "use the page of this server"
    )


def _from_our_page(request: Request) -> bool:
    """Return whether our own page sent the request. A proxy may change the host, but not the browser's own mark."""
    if (site := request.headers.get("Sec-Fetch-Site")) is not None:
        return site == "same-origin"
    if (origin := request.headers.get("Origin")) is None:
        return True  # no browser
    try:
        return urlsplit(origin).netloc == request.host != ""
    except ValueError:  # no URL
        return False


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
        self.body = body
        self._headers = [*headers, *HEADERS.items()]

    @cached_property
    def nbytes(self) -> int:
        """Return the size with the compressed form, which is made if it was not."""
        return len(self.body) + (len(self._packed) if len(self.body) >= GZIP_FROM_BYTES else 0)

    def response(self, request: Request) -> Response:
        """Return the response to one request: compressed where the client accepts gzip, 304 where it has the answer."""
        packed = len(self.body) >= GZIP_FROM_BYTES and request.accept_encodings.quality("gzip") > 0
        response = Response(self._packed if packed else self.body, headers=self._headers)
        response.headers["ETag"] = f'W/"{self._tag}"'
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
        return blake2b(self.body, digest_size=16).hexdigest()

    @cached_property
    def _packed(self) -> bytes:
        return gzip.compress(self.body, GZIP_LEVEL, mtime=0)


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


def with_headers(app: WSGIApplication, change: Callable[[Headers], Headers]) -> WSGIApplication:
    """Return an app whose responses have other headers."""

    def changed(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: Headers, *error: Any) -> Any:
            return start_response(status, change(headers), *error)

        return app(environ, start)

    return changed


def finish(request: Request, response: Response) -> Response:
    """Add the headers of every response, and compress it where the client accepts gzip and it is not streamed."""
    if response.status_code == 200 and not response.is_streamed:
        headers = [(name, value) for name, value in response.headers if name != "Content-Length"]
        return Finished(response.get_data(), headers).response(request)
    response.headers.update(HEADERS)
    return response
