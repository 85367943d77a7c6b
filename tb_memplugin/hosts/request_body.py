"""Bodies of POST requests: from our own page only, and of limited size.

Any other site that a user visits could send requests to a server on localhost. Browsers mark each request with its
origin; other programs send no mark.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from werkzeug.exceptions import ClientDisconnected
from werkzeug.wrappers import Request

from tb_memplugin.errors import InputError

MAX_BYTES = 16 << 20  # the same limit as for text files


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
    if length > MAX_BYTES:
        remedy = f"send the last {MAX_BYTES >> 20} MiB, or run tb-memplugin explain on the file"
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
