"""Addresses and ports of `tb-memplugin xprof`: what it listens on, what it prints, and what it answers to."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.raw_http import exchange
from support.servers import BIN, DEMO, Server, fetch, free_port, listening_addresses
from support.xprof_server import PREFIX

LOOPBACK = {"127.0.0.1", "[::1]"}
STOCK_GRPC = 50051
needs_ss = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("ss") is None, reason="ss is not installed"
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a logdir of one run, into which XProf may write its caches."""
    folder = tmp_path_factory.mktemp("xprof") / "train_step"
    shutil.copytree(DEMO / "train_step", folder)
    return folder


@contextmanager
def started(logs: Path, *options: str) -> Iterator[tuple[Server, subprocess.Popen[str]]]:
    """Start XProf; wait until it prints its URL."""
    command = [str(BIN / "tb-memplugin"), "xprof", f"--logdir={logs}", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            port = next(word for word in line.split() if word.startswith("http")).rstrip("/").rpartition(":")[2]
            yield Server(f"http://localhost:{port}/", Path()), process
        finally:
            process.terminate()
            process.wait(timeout=60)


@needs_ss
def test_two_at_once_listen_on_loopback_alone(logs: Path) -> None:
    with (
        started(logs, "--port=0") as (first, one),
        started(logs, "--port=0", f"--grpc_port={STOCK_GRPC}") as (second, other),
    ):
        for server, process in ((first, one), (second, other)):
            [(port, addresses)] = listening_addresses(process.pid).items()
            assert server.url == f"http://localhost:{port}/"
            assert addresses <= LOOPBACK
            assert server.get(f"{PREFIX}version").status == 200
            assert server.get("memory/api/runs").status == 200


@needs_ss
def test_all_interfaces_where_they_are_asked_for(logs: Path) -> None:
    with started(logs, "--port=0", "--bind-all") as (server, process):
        assert process.stdout is not None
        told = process.stdout.readline()
        listening = listening_addresses(process.pid)
        assert len(listening) == 2 and all(not addresses & LOOPBACK for addresses in listening.values())
        for port in listening:
            assert f"port {port}" in told
        assert fetch(f"{server.url}{PREFIX}version", {"Host": "10.0.0.7"}).status == 200
        assert fetch(f"{server.url}{PREFIX}version", {"Host": "evil.example"}).status == 403


def test_a_rebound_name_gets_nothing_of_xprofs_either(logs: Path) -> None:
    with started(logs, "--port=0", "--allowed-host=hub.example") as (server, _):
        for path in ("", f"{PREFIX}runs", "memory/api/runs", f"{PREFIX}memory/index.html"):
            assert server.get(path, {"Host": "evil.example"}).status == 403
            assert server.get(path, {"Host": "hub.example"}).status == 200
        policy = server.get("memory/index.html").headers["Content-Security-Policy"]
        assert "frame-ancestors 'self'" in policy  # XProf's page frames ours
        for route in (b"", b"memory/api/runs"):
            answer = exchange(server.url, b"GET /%s HTTP/1.0\r\nHost: localhost\r\n\r\n" % route)
            assert answer.lower().count(b"\r\ndate: ") == 1


def test_signals_end_it_cleanly(logs: Path) -> None:
    with started(logs, "--port=0") as (_, process):
        process.terminate()
        assert process.wait(timeout=60) == 0


def test_ports_that_are_taken_or_none_are_one_line(logs: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("", free_port()))
        taken.listen()
        used = taken.getsockname()[1]
        for options in (["--port=99999"], [f"--port={used}"], ["--port=0", "--bind-all", f"--grpc_port={used}"]):
            done = subprocess.run(
                [str(BIN / "tb-memplugin"), "xprof", f"--logdir={logs}", *options],
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert (done.returncode, done.stdout) == (2, "")
            [line] = done.stderr.splitlines()
            assert "Cannot listen" in line and options[-1].partition("=")[2] in line
