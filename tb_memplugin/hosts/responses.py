"""Responses: JSON, tables and errors, and the headers that all of them have."""

from __future__ import annotations

import gzip
import json
from hashlib import blake2b
from typing import Any

from werkzeug.wrappers import Request, Response

from tb_memplugin.errors import InputError

JSON = "application/json"
TABLES = "application/octet-stream"
# Level 1 takes a third of the time of the default for a tenth more bytes, and most hosts are on loopback.
GZIP_LEVEL = 1
GZIP_FROM_BYTES = 1024


def json_response(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, allow_nan=False), status, content_type=JSON)


def error_response(status: int, error: InputError) -> Response:
    content = {"what": error.what, "where": error.where, "remedy": error.remedy}
    return json_response({"error": content}, status)


def tables_response(content: bytes) -> Response:
    return Response(content, content_type=TABLES)


def finish(request: Request, response: Response) -> Response:
    """Add the headers of every response, and compress it where the client accepts gzip."""
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-cache"  # revalidate: a file may have changed
    response.headers["Vary"] = "Accept-Encoding"
    if response.status_code != 200:
        return response
    body = response.get_data()
    response.set_etag(blake2b(body, digest_size=16).hexdigest(), weak=True)
    response.make_conditional(request.environ)
    response.headers.remove("Date")  # servers add their own
    accepts = request.accept_encodings.quality("gzip") > 0
    if accepts and response.status_code == 200 and len(body) >= GZIP_FROM_BYTES:
        response.set_data(gzip.compress(body, GZIP_LEVEL, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response
