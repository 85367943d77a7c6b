"""What is sent to us: by our own page, and not too much of it.

A page of any other site that a user visits could send to a server on localhost as well; a browser says of each
request where it is from, and other programs say nothing.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from werkzeug.wrappers import Request

from tb_memplugin.errors import InputError

MAX_BYTES = 16 << 20  # as much as is read of any text


class NotAccepted(InputError):
    """A body that is not read; `status` is HTTP's."""

    def __init__(self, status: int, what: str, where: str, remedy: str) -> None:
        super().__init__(what, where, remedy)
        self.status = status


def sent(request: Request) -> bytes:
    """The body. NotAccepted where another site sends it, or where it is too large or of unknown length."""
    if not _from_our_page(request):
        raise NotAccepted(403, "Sent by another site", request.headers.get("Origin", "unknown"), "open our own page")
    length = request.content_length
    if length is None:
        raise NotAccepted(411, "Length unknown", "Content-Length", "send the text in one piece")
    if length > MAX_BYTES:
        remedy = f"send the last {MAX_BYTES >> 20} MiB, or run tb-memplugin explain on the file"
        raise NotAccepted(413, "The text is too large", f"{length} bytes", remedy)
    return request.get_data(cache=False)


def _from_our_page(request: Request) -> bool:
    """Proxies may change the host that we see, but a browser knows whether the page was the server's own."""
    if (site := request.headers.get("Sec-Fetch-Site")) is not None:
        return site == "same-origin"
    if (origin := request.headers.get("Origin")) is None:
        return True  # no browser
    return urlsplit(origin).netloc == request.host != ""
