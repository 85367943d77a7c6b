"""Requests as WSGI servers pass them on: the query may contain any bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

NOT_ASCII = re.compile(rb"[\x80-\xff]")


class PageRequest(Request):
    """A request whose query is quoted as browsers quote it. Werkzeug raises UnicodeDecodeError for raw bytes."""

    def __init__(self, environ: WSGIEnvironment) -> None:
        super().__init__(environ)
        self.query_string = NOT_ASCII.sub(lambda found: b"%%%02X" % found[0][0], self.query_string)
