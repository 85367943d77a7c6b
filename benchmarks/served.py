"""The three hosts as processes on a logdir that grows, and their memory and open files."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.cold_server import FIRST_VIEWS, OURS, Server
from benchmarks.generate import write

DEMO = Path(__file__).parent.parent / "demo_logdir"
APIS = {
    "standalone": "/",
    "tensorboard": "/data/plugin/memory/",
    "xprof": "/data/plugin/profile/memory/",
}
SERVERS = {
    "standalone": OURS,
    "tensorboard": Server(("tensorboard", "--load_fast=false")),
    "xprof": Server(("tb-memplugin", "xprof")),
}


@dataclass
class Figures:
    """Figures of a process, taken each second."""

    megabytes: list[float] = field(default_factory=list)
    processor_seconds: float = 0.0
    files: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Served:
    """One host on a logdir."""

    url: str
    api: str
    logdir: Path
    pid: int

    def get(self, route: str, **query: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{self.api}api/{route}?{urlencode(query)}", timeout=60) as answer:
            return json.load(answer)

    def paths(self, run: str) -> list[str]:
        """Return the requests that the page makes of a run: lists, first views, rows, trees and details."""
        api = f"{self.api}api/"
        found = [f"{self.api}index.html", f"{self.api}index.js", f"{api}runs"]
        found += [f"{api}{route}?{urlencode({'run': run})}" for route in ("recordings", "overview")]
        for recording in self.get("recordings", run=run)["recordings"][:2]:
            about = urlencode({"id": recording["id"]})
            first = FIRST_VIEWS[recording["axis"]]
            routes = (first, "rows", "advice", "usage", "details?row=0", "tree?by=model&merge=1", "tree?by=source")
            found += [f"{api}{route}{'&' if '?' in route else '?'}{about}" for route in routes]
        return found


@contextmanager
def served(host: str, large_buffers: int) -> Iterator[Served]:
    """Start a host on a copy of the demo's runs, with a run `large` of a program of so many buffers (0: without)."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        shutil.copytree(DEMO, logs)
        if large_buffers:
            path, _ = write(Path(folder), large_buffers)
            shutil.move(path.parents[3], logs / "large")
        with SERVERS[host].running(logs) as (client, pid):
            yield Served(client.address, APIS[host], logs, pid)


@contextmanager
def watched(pid: int) -> Iterator[Figures]:
    """Take figures of a process each second, beside what happens inside the block."""
    figures, done = Figures(), threading.Event()

    before = _processor_seconds(pid)

    def watch() -> None:
        while not done.wait(1):
            figures.processor_seconds = _processor_seconds(pid) - before
            status = Path(f"/proc/{pid}/status").read_text()
            figures.megabytes.append(int(status.partition("VmRSS:")[2].split()[0]) / 1024)
            figures.files.append(len(os.listdir(f"/proc/{pid}/fd")))

    with _beside(watch, done):
        yield figures


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def growing(logdir: Path, every_seconds: float, keep: int) -> Iterator[list[int]]:
    """Add a run, rewrite one and delete one at each interval. Yields the list of the numbers of runs so far."""
    made: list[int] = []
    done = threading.Event()
    source = DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb"

    def grow() -> None:
        while not done.wait(every_seconds):
            made.append(len(made))
            _put(source, _session(logdir, made[-1]))
            rewritten = _session(logdir, max(made[-1] - keep // 2, 0))
            _put(source, rewritten)
            if made[-1] >= keep:
                shutil.rmtree(_session(logdir, made[-1] - keep).parent)

    with _beside(grow, done):
        yield made


@contextmanager
def rewritten(path: Path, every_seconds: float) -> Iterator[None]:
    """Change the time of a file at each interval, so that it is read again."""
    done = threading.Event()

    def touch() -> None:
        while not done.wait(every_seconds):
            os.utime(path)

    with _beside(touch, done):
        yield


def _session(logdir: Path, number: int) -> Path:
    return logdir / "plugins/profile" / f"{number:06}" / "localhost.xplane.pb"


def _put(source: Path, to: Path) -> None:
    """Write a file in pieces, as a profiler does, in place of an earlier one."""
    to.parent.mkdir(parents=True, exist_ok=True)
    content = source.read_bytes()
    with to.open("wb") as file:
        for at in range(0, len(content), 64 << 10):
            file.write(content[at : at + (64 << 10)])
            file.flush()


@contextmanager
def _beside(work: Any, done: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
