"""Clients of a web server: many connections in one thread, each with the next request as soon as it has an answer.

It parses as little as possible, since it shares the processors with the server that it measures.
"""

from __future__ import annotations

import asyncio
import random
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

END = b"\r\n\r\n"
LENGTH = b"\r\ncontent-length:"
CLOSE = b"\r\nconnection: close"
EMPTY = {b"304", b"204"}


@dataclass
class Load:
    """What the clients saw."""

    seconds: array[float] = field(default_factory=lambda: array("d"))  # of each request
    statuses: Counter[str] = field(default_factory=Counter)
    worst: dict[str, float] = field(default_factory=dict)  # seconds, by request

    def quantile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


Again = Callable[["_Client"], None]


class _Client(asyncio.Protocol):
    def __init__(self, paths: Sequence[str], host: str, load: Load, pause: float, again: Again) -> None:
        self._again = again
        self._requests = [
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: gzip\r\n\r\n".encode() for path in paths
        ]
        self._paths = paths
        self._load = load
        self._pause = pause
        self._received = bytearray()
        self._expected = -1  # bytes of the answer, -1 before its headers
        self._sent = 0.0
        self._at = 0
        self._is_last = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def end(self) -> None:
        self._transport.abort()

    def _ask(self) -> None:
        if self._transport.is_closing():
            return
        self._at = random.randrange(len(self._requests))
        self._sent = time.perf_counter()
        self._transport.write(self._requests[self._at])

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._expected < 0:
            end = self._received.find(END)
            if end < 0:
                return
            headers = bytes(self._received[: end + 2]).lower()
            at = headers.find(LENGTH)
            empty = at < 0 or headers[9:12] in EMPTY
            self._expected = end + 4 + (0 if empty else int(headers[at + len(LENGTH) :].split(b"\r\n", 1)[0]))
            self._load.statuses[headers[9:12].decode()] += 1
            self._is_last = CLOSE in headers
        if len(self._received) >= self._expected:
            seconds = time.perf_counter() - self._sent
            self._load.seconds.append(seconds)
            path = self._paths[self._at]
            self._load.worst[path] = max(self._load.worst.get(path, 0), seconds)
            self._received.clear()
            self._expected = -1
            if self._is_last:
                self._transport.close()
            elif self._pause:
                asyncio.get_running_loop().call_later(self._pause, self._ask)
            else:
                self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        """Connect again: TensorBoard's server closes the connection after each answer."""
        if self._expected >= 0 or self._received:
            self._load.statuses["cut off"] += 1
        self._received.clear()
        self._expected = -1
        self._again(self)


async def run(url: str, paths: Sequence[str], clients: int, seconds: float, pause: float = 0) -> Load:
    """Send requests for random paths for a time. Connections that the server closes are opened again."""
    parts, load = urlsplit(url), Load()
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds

    connecting: set[asyncio.Task[None]] = set()

    async def connect(client: _Client) -> None:
        await loop.create_connection(lambda: client, str(parts.hostname), int(parts.port or 80))

    def again(client: _Client) -> None:
        if loop.time() < end:
            task = loop.create_task(connect(client))
            connecting.add(task)
            task.add_done_callback(connecting.discard)

    open_ = [_Client(paths, parts.netloc, load, pause, again) for _ in range(clients)]
    for client in open_:
        again(client)
    await asyncio.sleep(seconds)
    for client in open_:
        client.end()
    return load
