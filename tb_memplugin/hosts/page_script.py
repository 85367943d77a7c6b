"""A script of ours in a page of XProf."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from werkzeug.wrappers import Response

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment


def with_script(stock: WSGIApplication, environ: WSGIEnvironment, script: str) -> Response:
    """Return the answer of `stock`, with a script element at the end of the head if it is a page."""
    page = Response.from_app(stock, environ)
    if page.mimetype == "text/html" and page.status_code == 200:
        compressed = page.headers.pop("Content-Encoding", None) == "gzip"
        html = gzip.decompress(page.get_data()) if compressed else page.get_data()
        page.set_data(html.replace(b"</head>", script.encode() + b"</head>", 1))
    return page
