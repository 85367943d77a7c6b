"""Attempts at the WSGI application: an input is a request as text, the answer must be complete and not a failure."""

from __future__ import annotations

import gzip
import json
import logging
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from fuzz.attempts.folders import UnexpectedErrors
from support.servers import DEMO, TESTS

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.standalone import BelowAnyPrefix

# Small runs, since each request should take a millisecond.
RUNS = (
    DEMO / "device_profile",
    DEMO / "device_profile_leak",
    TESTS / "data" / "oom_texts" / "bfc_old.txt",
    TESTS / "data" / "xla_dumps" / "gpu_h100",
)
STATUSES = {200, 206, 304, 400, 403, 404, 405, 411, 413, 421}
PASTED = 50  # texts, after which the application is made again


class Server:
    """The application on a logdir of a few small runs."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        for path in RUNS:
            if path.is_dir():
                shutil.copytree(path, Path(self.folder.name, path.name))
            else:
                shutil.copy(path, Path(self.folder.name, f"{path.stem}.oom.txt"))
        self.restart()

    def restart(self) -> None:
        catalog = Catalog(self.folder.name)
        self.app = BelowAnyPrefix(MemoryApp(catalog))
        self.runs = [run.name for run in catalog.runs()]
        self.ids = [r.id for run in self.runs for r in catalog.listing(run).recordings]
        self.posted = 0


@cache
def server() -> Server:
    # waitress and werkzeug log what clients send.
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    return Server()


def attempt_request(data: bytes, everything: bool) -> bool:
    """Send a request. Return whether it was answered with content."""
    environ = environ_of(data)
    here = server()
    if environ["REQUEST_METHOD"] == "POST":
        here.posted += 1
        if here.posted % PASTED == 0:
            here.restart()
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        started.append((status, headers))

    with UnexpectedErrors():
        answer: Iterable[bytes] = here.app(environ, start_response)
        body = b"".join(answer)
        if hasattr(answer, "close"):
            answer.close()
    [(status, headers)] = started
    check(int(status.split()[0]), dict(headers), body, environ["REQUEST_METHOD"])
    return status.startswith("200")


def check(status: int, headers: dict[str, str], body: bytes, method: str) -> None:
    assert status in STATUSES, f"status {status}: {body[:500]!r}"
    for name, value in headers.items():
        assert "\r" not in f"{name}{value}" and "\n" not in f"{name}{value}", f"a header has two lines: {name}: {value}"
    if "Content-Length" in headers and method != "HEAD" and status != 304:
        assert int(headers["Content-Length"]) == len(body), "the length is not that of the body"
    if headers.get("Content-Encoding") == "gzip" and method != "HEAD":
        body = gzip.decompress(body)
    if headers.get("Content-Type", "").startswith("application/json") and body:
        answer = json.loads(body)
        if status != 200:
            assert set(answer["error"]) == {"what", "where", "remedy"}, f"an incomplete error: {answer}"


def environ_of(data: bytes) -> dict[str, Any]:
    """Return the WSGI environment of a request, as servers make it: text decoded as Latin-1, the path unquoted."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.partition(b" ")
    path, _, query = target.partition(b"?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method.decode("latin-1").upper()[:20],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "8791",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(body),
        "wsgi.errors": BytesIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "HTTP_HOST": "localhost:8791",
    }
    for line in lines:
        name, _, value = line.partition(b":")
        key = name.strip().decode("latin-1").upper().replace("-", "_")
        text = value.strip().decode("latin-1").replace("\r", "")
        if key in ("CONTENT_LENGTH", "CONTENT_TYPE"):
            environ[key] = text
        elif key:
            environ[f"HTTP_{key}"] = text
    return environ
