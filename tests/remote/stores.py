"""Remote stores on this machine: one in memory that fails on demand, and an HTTP server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fsspec
from fsspec.implementations.memory import MemoryFileSystem


class UnsteadyStore(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Files in memory. `before` is called with the path and the range of each request, and may raise."""

    protocol = "unsteady"
    store: dict[str, Any] = {}  # noqa: RUF012 shared by its instances, as the other one's is
    before: Callable[[str, int | None, int | None], None] = staticmethod(lambda path, begin, end: None)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("unsteady://").strip("/") if path.strip("/") else ""

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        type(self).before(path, start, end)
        content: bytes = super().cat_file(path, start, end, **options)
        return content


@contextmanager
def unsteady(before: Callable[[str, int | None, int | None], None]) -> Iterator[Any]:
    """Give a store whose requests for bytes call `before`."""
    fsspec.register_implementation("unsteady", UnsteadyStore, clobber=True)
    UnsteadyStore.before = staticmethod(before)
    UnsteadyStore.store.clear()
    yield fsspec.filesystem("unsteady")
    UnsteadyStore.store.clear()


@contextmanager
def http_server(files: dict[str, bytes], *, ranges: bool) -> Iterator[tuple[str, list[str]]]:
    """Serve files by path, with or without ranges; give the URL and a list of the requested ranges."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            content = files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            wanted, status = self.headers.get("Range"), 200
            if body:
                asked.append(wanted or "all")
            total = len(content)
            if wanted and ranges:
                begin, end = wanted.removeprefix("bytes=").split("-")
                content, status = content[int(begin) : int(end) + 1], 206
            self.send_response(status)
            if status == 206:
                self.send_header("Content-Range", f"bytes {begin}-{int(begin) + len(content) - 1}/{total}")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    server.server_close()
    thread.join()
