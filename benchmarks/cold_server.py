"""Servers in new processes: from the first request, which lists the run, to the first view, with time and memory.

XProf and xprof-rs answer the same requests, those of XProf's page. Ours are those of our page.
"""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from benchmarks.timing import BIN, ENVIRONMENT, Cost, tree_bytes

START_SECONDS = 120
ANSWER_SECONDS = 1200
GZIP = b"\x1f\x8b"
FIRST_VIEWS = {"PROGRAM_ORDER": "memory_viewer", "TIME": "memory_profile", "INSTANT": "device_profile"}  # by axis


@dataclass(frozen=True, slots=True)
class Client:
    """A connection to a server, asked as a browser asks: answers may be compressed."""

    connection: HTTPConnection

    @property
    def address(self) -> str:
        return f"http://{self.connection.host}:{self.connection.port}"

    def get(self, path: str, **query: str) -> bytes:
        self.connection.request("GET", f"/{path}?{urlencode(query)}", headers={"Accept-Encoding": "gzip"})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path} {query}: {answer.status} {content[:1000].decode(errors='replace')}")
        return content

    def another(self) -> Client:
        """Return a client with a connection of its own."""
        return Client(HTTPConnection(self.connection.host, self.connection.port, timeout=ANSWER_SECONDS))

    def json(self, path: str, **query: str) -> Any:
        answer = self.get(path, **query)
        return json.loads(gzip.decompress(answer) if answer.startswith(GZIP) else answer)


def our_first_views(client: Client) -> int:
    """Return the size of the answers in bytes: one per memory, as XProf's has all; one of a device profile."""
    recordings = client.json("api/recordings", run=_our_run(client))["recordings"]
    if recordings[0]["axis"] == "INSTANT":
        recordings = recordings[:1]  # has all devices
    return sum(len(client.get(f"api/{FIRST_VIEWS[each['axis']]}", id=each["id"])) for each in recordings)


def first_view(client: Client, run: str) -> int:
    """List the run, and ask for the first view of its largest recording."""
    largest = client.json("api/recordings", run=run)["recordings"][0]
    return len(client.get(f"api/{FIRST_VIEWS[largest['axis']]}", id=largest["id"]))


def our_overview_rows(client: Client) -> int:
    return len(client.get("api/overview_figures", run=_our_run(client)))


def our_overview(client: Client) -> int:
    return our_overview_rows(client) + len(client.get("api/overview", run=_our_run(client)))


def _our_run(client: Client) -> str:
    return str(client.json("api/runs")["runs"][0]["name"])


def xprof_memory_profile(client: Client) -> int:
    return len(_xprof(client, "memory_profile", _xprof_run(client)))


def xprof_memory_viewer(client: Client, **options: str) -> int:
    """Ask for the first module, whose list XProf's page needs first."""
    run = _xprof_run(client)
    modules = client.get("data/plugin/profile/module_list", run=run, tag="memory_viewer", host="")
    module = (gzip.decompress(modules) if modules.startswith(GZIP) else modules).decode().split(",")[0]
    return len(_xprof(client, "memory_viewer", run, module_name=module, memory_space="0", **options))


def xprof_timeline(client: Client) -> int:
    """Ask for the page of the allocation timeline, which has only rectangles."""
    return xprof_memory_viewer(client, view_memory_allocation_timeline="true")


def _xprof_run(client: Client) -> str:
    run = str(client.json("data/plugin/profile/runs")[0])
    client.get("data/plugin/profile/run_tools", run=run)
    return run


def _xprof(client: Client, tool: str, run: str, **options: str) -> bytes:
    (host, *_) = client.json("data/plugin/profile/hosts", run=run, tag=tool)
    return client.get("data/plugin/profile/data", run=run, tag=tool, host=host["hostname"], **options)


class Server(NamedTuple):
    """A way to start a server on a logdir."""

    command: tuple[str, ...]

    def measure(self, logdir: Path | str, view: Callable[[Client], int]) -> Cost:
        """Start the server, ask for a view, and end the server. `whole` has the start of the process as well."""
        started = time.perf_counter()
        with self.running(logdir) as (client, pid):
            asked = time.perf_counter()
            answer = view(client)
            answered = time.perf_counter()
            return Cost(answered - started, answered - asked, tree_bytes(pid), answer)

    @contextmanager
    def running(self, logdir: Path | str) -> Iterator[tuple[Client, int]]:
        """Start the server; yield a client and the process id, and end the server."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [str(BIN / self.command[0]), *self.command[1:], f"--logdir={logdir}", f"--port={port}"]
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=ENVIRONMENT)
            connection = HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
            try:
                _wait(port, process)
                yield Client(connection), process.pid
                assert process.poll() is None, "the server has ended"
            finally:
                connection.close()
                process.kill()
                process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server listens."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.002)


OURS = Server(("tb-memplugin", "serve"))
XPROF_RS = Server(("xprof-rs",))
XPROF = Server(("xprof", "--hide_capture_profile_button"))
