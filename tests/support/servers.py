"""Real servers on loopback, for tests of the hosts."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from support.checkout import demo_copy

TESTS = Path(__file__).resolve().parent.parent
REPOSITORY = TESTS.parent
DEMO = demo_copy(REPOSITORY)
DATA = REPOSITORY.parent / "shared" / "data"
BIN = Path(sys.executable).parent

# Startup takes seconds where a whole test run uses both cores.
START_SECONDS = 120
ANSWER_SECONDS = 60


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Server:
    url: str  # ends in "/"
    log: Path

    def get(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answer:
        return fetch(self.url + path, headers, method)


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def fetch(url: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answer:
    """Return the raw response, including redirects and errors, with gzip decoded."""
    request = urllib.request.Request(url, headers=dict(headers or {}), method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stay)
    try:
        with opener.open(request, timeout=ANSWER_SECONDS) as response:
            return _answer(response.status, response.headers, response.read())
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.headers, error.read())


def _answer(status: int, headers: Message, body: bytes) -> Answer:
    return Answer(status, headers, gzip.decompress(body) if headers["Content-Encoding"] == "gzip" and body else body)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listening_addresses(pid: int) -> dict[int, set[str]]:
    """Return the addresses that a process listens on, by port, as `ss` writes them. Linux only."""
    done = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True)
    found: dict[int, set[str]] = {}
    for line in done.stdout.splitlines():
        if f"pid={pid}," in line:
            address, _, port = line.split()[3].rpartition(":")
            found.setdefault(int(port), set()).add(address)
    return found


@contextmanager
def running(
    command: Sequence[str], port: int, folder: Path, ready: str = "", environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Start a server, wait until `ready` (a path) answers, and stop it at the end."""
    server = Server(f"http://127.0.0.1:{port}/", folder / f"server-{port}.log")
    with server.log.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _is_up(server, ready):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command} did not come up:\n{server.log.read_text()[-4000:]}")
            time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _is_up(server: Server, ready: str) -> bool:
    try:
        server.get(ready)
    except OSError:
        return False
    return True
