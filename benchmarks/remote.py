"""Reading a logdir in a local S3 server with added latency: requests, bytes and seconds, beside a full download.

    python -m benchmarks.remote LOGDIR --milliseconds 50 --megabytes-per-second 90

LOGDIR is copied into moto's server; `python -m benchmarks.pods` makes one. Each connection has the given rate. Figures
are medians of three rounds.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import fsspec

from benchmarks.latency_proxy import Counts, proxied
from tb_memplugin import logdir
from tb_memplugin.executors import LocalProcesses
from tb_memplugin.fleet.scan import Scan
from tb_memplugin.fleet.sessions import captures
from tb_memplugin.logdir import HostFile, names

URL = "s3://bucket/logdir"
ROUNDS = 3
AT_ONCE = 8  # hosts, as a fleet is read
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "key", "AWS_DEFAULT_REGION": "us-east-1"}


@contextmanager
def server(source: Path) -> Iterator[int]:
    """Run moto's server with a copy of a logdir; give its port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "benchmarks.s3_server", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        store = fsspec.filesystem("s3", endpoint_url=f"http://127.0.0.1:{port}")
        _wait(port)
        store.mkdir("bucket")
        for path in source.rglob("*"):
            if path.is_file():
                store.pipe_file(f"{URL}/{path.relative_to(source)}", path.read_bytes())
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("moto's server does not start")


def _stream(file: HostFile) -> int:
    with fsspec.open(file.path, "rb") as stream:
        return len(stream.read())


def _parts(file: HostFile) -> int:
    return len(logdir.read_content(file)[0])


def _whole(file: HostFile) -> int:
    return len(logdir.read_bytes(file))


def _find() -> list[logdir.Run]:
    return logdir.find_runs(URL)


def _walk() -> list[logdir.Run]:
    with patch.object(names, "FLAT_STORES", frozenset()):
        return logdir.find_runs(URL)


def _any() -> bool:
    return logdir.has_runs(URL)


def _fleet(runs: Sequence[logdir.Run], jobs: int) -> None:
    """Read the newest capture without a cache, in processes that start."""
    processes = LocalProcesses(jobs)
    try:
        fleet = Scan(lambda: processes).fleet(captures(runs)[0])
    finally:
        processes.stop()
    if failed := [file.problem for file in fleet.files if file.problem]:
        raise SystemExit(f"{len(failed)} files failed: {failed[0]}")


def _each(read: Callable[[HostFile], int], files: Sequence[HostFile], at_once: int) -> list[int]:
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(read, files))


def measure(counts: Counts, action: Callable[[], Any]) -> tuple[int, int, float]:
    """Return requests, bytes and seconds of an action."""
    found = []
    for _ in range(ROUNDS):
        counts.reset()
        began = time.perf_counter()
        action()
        seconds = time.perf_counter() - began
        found.append((counts.requests.value, counts.nbytes.value, seconds))
    requests, nbytes, seconds_of_all = zip(*found, strict=True)
    return int(median(requests)), int(median(nbytes)), median(seconds_of_all)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logdir", type=Path)
    parser.add_argument("--milliseconds", type=float, default=50, help="of latency, for each request")
    parser.add_argument("--megabytes-per-second", type=float, default=90, help="of each connection")
    parser.add_argument("--only", metavar="TEXT", help="measure what has this in its name")
    arguments = parser.parse_args()
    os.environ.update(CREDENTIALS)
    rate = arguments.megabytes_per_second * 1e6
    with server(arguments.logdir) as port, proxied(port, arguments.milliseconds / 1e3, rate) as counts:
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{counts.port.value}"
        runs = _find()
        files = [file for run in runs for file in run.files]
        total = sum(file.size for file in files)
        print(f"{len(runs)} runs, {len(files)} files, {total / 1e6:.1f} MB")
        ways: dict[str, Callable[[], Any]] = {"any run": _any, "one listing": _find, "folder by folder": _walk}
        for name, read in {"needed parts": _parts, "all in ranges": _whole, "all as a stream": _stream}.items():
            for at_once in (1, AT_ONCE):
                ways[f"{name}, {at_once} at once"] = partial(_each, read, files, at_once)
        for jobs in (1, 2):
            ways[f"fleet, {jobs} at once"] = partial(_fleet, runs, jobs)
        for name, action in ways.items():
            if arguments.only and arguments.only not in name:
                continue
            requests, nbytes, seconds = measure(counts, action)
            print(f"{name:26} {requests:6,} requests {nbytes / 1e6:8.2f} MB {seconds:7.2f} s")


if __name__ == "__main__":
    main()
