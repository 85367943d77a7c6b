"""A proxy before a local web server that answers as late and as slowly as a remote store, and counts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
CONNECTION = re.compile(rb"\r\nconnection: *[^\r]*\r\n", re.IGNORECASE)
CHUNK_BYTES = 256 << 10


@dataclass(frozen=True)
class Counts:
    """Requests, and bytes of the contents that were sent, since the last reset."""

    port: Synchronized[int]
    requests: Synchronized[int]
    nbytes: Synchronized[int]

    def reset(self) -> None:
        self.requests.value = self.nbytes.value = 0


@contextmanager
def proxied(port: int, seconds: float, bytes_per_second: float) -> Iterator[Counts]:
    """Run a proxy before a local port, with a latency for each request and a rate for each connection."""
    spawn = get_context("spawn")
    counts = Counts(spawn.Value("q"), spawn.Value("q"), spawn.Value("q"))
    process = spawn.Process(target=_run, args=(port, seconds, bytes_per_second, counts), daemon=True)
    process.start()
    while not counts.port.value:
        process.join(0.05)
    yield counts
    process.terminate()
    process.join()


def _run(port: int, seconds: float, bytes_per_second: float, counts: Counts) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                counts.requests.value += 1
                await asyncio.sleep(seconds)
                await _answer(head, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        above, to_above = await asyncio.open_connection("127.0.0.1", port)
        to_above.write(request)
        head = await above.readuntil(b"\r\n\r\n")
        writer.write(CONNECTION.sub(b"\r\n", head))  # the proxy's connections stay open, as a store's do
        length = LENGTH.search(head)
        left = int(length[1]) if length and not request.startswith(b"HEAD") else 0
        counts.nbytes.value += left
        while left:
            chunk = await above.read(min(left, CHUNK_BYTES))
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(len(chunk) / bytes_per_second)
            left -= len(chunk)
        to_above.close()

    async def serve() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        counts.port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(serve())
