"""A store of S3's interface with very many small objects, all with one content, which lists them as fast as S3 does.

moto's server takes a time for each page of a listing that grows with the number of all objects.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from urllib.parse import parse_qs, urlsplit

PAGE = 1000  # objects, as S3 lists at most
RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@contextmanager
def listing_server(keys: Sequence[str], content: bytes, seconds: float) -> Iterator[tuple[int, Synchronized[int]]]:
    """Serve objects in the bucket `bucket`, each request after some seconds; give the port and a count of requests."""
    spawn = get_context("spawn")
    port, requests = spawn.Value("q"), spawn.Value("q")
    process = spawn.Process(target=_run, args=(keys, content, seconds, port, requests), daemon=True)
    process.start()
    while not port.value:
        process.join(0.05)
    yield int(port.value), requests
    process.terminate()
    process.join()


def _run(
    keys: Sequence[str], content: bytes, seconds: float, port: Synchronized[int], requests: Synchronized[int]
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, sorted(keys), content, seconds, requests))
    port.value = server.server_port
    server.serve_forever()


def _page(keys: Sequence[str], query: dict[str, list[str]], size: int) -> bytes:
    """Return a page of the objects whose keys, which are sorted, begin with a prefix."""
    prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
    first = max(bisect_left(keys, prefix), int(query.get("continuation-token", ["0"])[0]))
    last = bisect_left(keys, f"{prefix}\U0010ffff")
    more = not delimiter and first + PAGE < last
    token = f"<NextContinuationToken>{first + PAGE}</NextContinuationToken>" if more else ""
    folders: dict[str, None] = {}
    if delimiter:
        folders = dict.fromkeys(
            f"{prefix}{key[len(prefix) :].partition('/')[0]}/" for key in keys[first:last] if "/" in key[len(prefix) :]
        )
        keys = [key for key in keys[first:last] if "/" not in key[len(prefix) :]]
    else:
        keys = keys[first : min(first + PAGE, last)]
    prefixes = "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in folders)
    contents = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2026-11-23T04:00:00.000Z</LastModified><ETag>&quot;5d41402abc4b2a76b9719"
        f"d911017c592&quot;</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        for key in keys
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>'
        f"bucket</Name><KeyCount>{len(keys)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>{token}{contents}{prefixes}"
        "</ListBucketResult>"
    ).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # so that head and content are one packet
    disable_nagle_algorithm = True

    def __init__(
        self, keys: Sequence[str], content: bytes, seconds: float, requests: Synchronized[int], *arguments: object
    ) -> None:
        self._keys, self._content, self._seconds, self._requests = keys, content, seconds, requests
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self._requests.value += 1
        time.sleep(self._seconds)
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            self._answer(200, _page(self._keys, query, len(self._content)), {})
            return
        wanted = RANGE.fullmatch(self.headers.get("Range", ""))
        size = len(self._content)
        begin, end = (int(wanted[1]), min(int(wanted[2] or size) + 1, size)) if wanted else (0, size)
        part = {"Content-Range": f"bytes {begin}-{end - 1}/{size}"} if wanted else {}
        self._answer(206 if wanted else 200, self._content[begin:end], part)

    def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content)), "ETag": '"5d41402a"'}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass
