"""The web server against clients that are slow, idle or greedy, in a process of its own with short time limits."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from support.raw_http import GET, connect, exchange, read_all, read_to
from support.servers import Server, fetch
from waitress.adjustments import Adjustments
from waitress.channel import ClientDisconnected

from tb_memplugin.hosts.serving.server import THREADS, FairQueue, _Channel
from tb_memplugin.questions.asking.source import Reads

SMALL = b"answer"
LARGE_BYTES = 16 << 20
# `/large` is more than any socket buffers; `/sent` answers with the length of the body. `/reading` ends only where
# nobody waits for it: `/begun` and `/left` count these.
SCRIPT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
from tb_memplugin.hosts.serving import server
from tb_memplugin.hosts.serving.addresses import listen, url_of
from tb_memplugin.questions.asking.source import Reads
import threading
from tb_memplugin.errors import Abandoned, end_if_abandoned
go, begun, left = threading.Event(), [], []
def app(environ, start_response):
    begun.extend([1] * (environ["PATH_INFO"] == "/reading"))
    while environ["PATH_INFO"] == "/reading":
        try:
            end_if_abandoned()
        except Abandoned:
            left.append(1)
            raise
        time.sleep(0.01)
    if environ["PATH_INFO"] == "/slow":
        go.wait()
    if environ["PATH_INFO"] == "/go":
        go.set()
    sent = environ["wsgi.input"].read()
    counts = {"/sent": len(sent), "/begun": len(begun), "/left": len(left)}
    bodies = {"/large": b"x" * %d, **{path: str(count).encode() for path, count in counts.items()}}
    body = bodies.get(environ["PATH_INFO"], %r)
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
vars(server).update(%r)
sockets = listen(["127.0.0.1"], 0)
server.serve(app, sockets, lambda: print(url_of("127.0.0.1", sockets), flush=True),
             lambda environ: Reads.LARGE_FILES if environ["PATH_INFO"] in ("/slow", "/reading") else Reads.NOTHING)
"""


@contextmanager
def serving(limits: Mapping[str, float] | None = None) -> Iterator[tuple[Server, subprocess.Popen[str]]]:
    """Start a server with other limits; it must end without a word."""
    code = SCRIPT % (LARGE_BYTES, SMALL, dict(limits or {}))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout is not None
    try:
        yield Server(process.stdout.readline().strip(), Path()), process
    finally:
        process.terminate()
        _, error = process.communicate(timeout=60)
        assert error == ""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as (server, _):
        yield server


def test_clients_that_send_a_byte_and_stop_occupy_no_thread(server: Server) -> None:
    with ExitStack() as opened:
        for _ in range(200):
            client = opened.enter_context(connect(server.url))
            client.sendall(b"G")
        assert server.get("").body == SMALL


def test_clients_that_do_not_take_their_answer_occupy_no_thread(server: Server) -> None:
    with ExitStack() as opened:
        for _ in range(24):
            client = opened.enter_context(connect(server.url))
            client.sendall(GET % b"/large" * 2)
        assert server.get("").body == SMALL


def test_a_request_that_does_not_arrive_is_given_up_even_if_bytes_still_come() -> None:
    with serving({"REQUEST_SECONDS": 1}) as (server, _), connect(server.url) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        with pytest.raises(OSError):  # the connection is closed
            for _ in range(600):
                client.sendall(b"X: y\r\n")
                time.sleep(0.1)


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    with serving({"BODY_SECONDS": 1}) as (server, _):
        assert exchange(server.url, b"POST /sent HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1") == b""


@pytest.mark.parametrize("request_", [b"", GET % b"/"])
def test_idle_connections_are_closed(request_: bytes) -> None:
    with serving({"IDLE_SECONDS": 1}) as (server, _):
        answer = exchange(server.url, request_)
        assert answer.endswith(SMALL if request_ else b"")


def test_more_clients_than_connections_do_not_keep_others_out() -> None:
    with serving({"MAX_CONNECTIONS": 20, "CROWDED_SECONDS": 0.2}) as (server, _), ExitStack() as opened:
        for _ in range(40):
            opened.enter_context(connect(server.url)).sendall(b"G")
        assert server.get("").body == SMALL


def test_answers_that_take_long_do_not_delay_those_that_are_there(server: Server) -> None:
    """Ask for more slow answers than there are threads."""
    with ExitStack() as opened:
        slow = [opened.enter_context(connect(server.url)) for _ in range(30)]
        for client in slow:
            client.sendall(GET % b"/slow")
        assert server.get("").body == SMALL
        assert server.get("go").body == SMALL  # the slow answers wait for it
        read_to(slow[0], SMALL)
        slow[0].sendall(GET % b"/")  # the connection goes on, in the quick pool
        read_to(slow[0], SMALL)


def test_reading_ends_once_its_client_has_gone(server: Server) -> None:
    with ExitStack() as opened:
        for _ in range(30):
            opened.enter_context(connect(server.url)).sendall(GET % b"/reading")
        _wait_for(server, "begun", THREADS[Reads.LARGE_FILES])
    _wait_for(server, "left", THREADS[Reads.LARGE_FILES])  # the other requests waited, and were dropped
    with connect(server.url) as client:
        client.sendall(GET % b"/slow")  # the threads are free again
        assert server.get("go").body == SMALL
        read_to(client, SMALL)


def _wait_for(server: Server, counted: str, least: int) -> None:
    until = time.monotonic() + 60
    while (count := int(server.get(counted).body)) < least and time.monotonic() < until:
        time.sleep(0.05)
    assert count >= least


def test_clients_take_turns() -> None:
    class Asked(NamedTuple):
        client: str
        number: int

    queue = FairQueue()
    for number in range(3):
        queue.append(Asked("greedy", number))
    queue.append(Asked("modest", 0))
    queue.append(Asked("other", 0))
    assert len(queue) == 5
    order = [queue.popleft() for _ in range(2)]
    queue.append(Asked("modest", 1))
    order += [queue.popleft() for _ in range(len(queue))]
    assert [one.client for one in order] == ["greedy", "modest", "other", "greedy", "modest", "greedy"]
    assert [one.number for one in order if one.client == "greedy"] == [0, 1, 2]
    assert not queue


def test_a_body_of_unknown_length_is_refused_in_place_of_others() -> None:
    head = b"POST /sent HTTP/1.1\r\nHost: x\r\n%b\r\n\r\n"
    chunk = b"186a0\r\n" + bytes(100_000) + b"\r\n"
    with serving({"MAX_ARRIVED_BYTES": 9_000_000}) as (server, _), connect(server.url) as first:
        first.sendall(head % b"Content-Length: 8000000" + bytes(100_000))
        assert server.get("").body == SMALL
        with connect(server.url) as greedy, suppress(OSError):
            greedy.sendall(head % b"Transfer-Encoding: chunked")
            for _ in range(40):
                greedy.sendall(chunk)
            assert b" 503 " in read_all(greedy)
        first.sendall(bytes(7_900_000))
        read_to(first, b"8000000")


def test_requests_sent_at_once_are_not_answered_at_once(server: Server) -> None:
    """Send many requests for a large answer in one piece: only the first may take memory."""
    answer = exchange(server.url, GET % b"/large" * 100)
    assert answer.count(b"HTTP/1.1 200 OK") == 1
    assert b"Connection: close" in answer.partition(b"\r\n\r\n")[0]


def test_one_connection_serves_many_requests(server: Server) -> None:
    with connect(server.url) as client:
        for _ in range(5):
            client.sendall(GET % b"/")
            answer = read_to(client, SMALL)
            assert answer.count(b"\r\nDate: ") == 1
            assert b"\r\nServer:" not in answer


def test_headers_and_bodies_have_limits(server: Server) -> None:
    assert b" 431 " in exchange(server.url, b"GET / HTTP/1.1\r\n" + b"X: %s\r\n" % (b"y" * 1000) * 100 + b"\r\n")
    post = b"POST /sent HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    assert b" 413 " in exchange(server.url, post + b"Content-Length: 99999999\r\n\r\n")
    assert exchange(server.url, post + b"Content-Length: 3\r\n\r\nabc").endswith(b"\r\n\r\n3")
    chunk = b"%x\r\n%s\r\n" % (1 << 20, b"z" * (1 << 20))
    chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
    assert exchange(server.url, chunked + chunk * 2 + b"0\r\n\r\n").endswith(b"\r\n\r\n%d" % (2 << 20))
    assert b" 413 " in exchange(server.url, chunked + chunk * 17)


@pytest.mark.parametrize(
    "wrong",
    [
        b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x00\xff HTTP/1.1\r\nHost: \xff\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",  # a TLS handshake
    ],
)
def test_requests_that_are_none_end_only_themselves(server: Server, wrong: bytes) -> None:
    with connect(server.url) as client:
        client.sendall(wrong)
        client.shutdown(1)
        read_all(client)
    assert server.get("").body == SMALL


def test_a_client_that_sends_no_request_and_leaves_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    """waitress names the path of a request whose client has gone before its answer."""

    class Left(_Channel):
        def write_soon(self, data: object) -> int:
            raise ClientDisconnected

    ours, theirs = socket.socketpair()
    with ours, theirs, caplog.at_level(logging.INFO, "waitress"):
        adj = Adjustments()
        tasks: list[Left] = []
        answered = SimpleNamespace(add_task=tasks.append, active_channels={}, adj=adj, pull_trigger=lambda: None)
        channel = Left(answered, ours, ("", 0), adj, {})
        channel.received(b"no request\r\n\r\n")
        tasks[0].service()
    assert "Client disconnected" in caplog.text and not channel.requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_cleanly(number: signal.Signals) -> None:
    with serving() as (server, process), connect(server.url) as idle:
        idle.sendall(b"G")
        assert fetch(server.url).body == SMALL
        process.send_signal(number)
        assert process.wait(timeout=60) == 0


def test_bodies_of_all_clients_have_a_limit_together() -> None:
    head = b"POST /sent HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n"
    with serving({"MAX_ARRIVED_BYTES": 20_000_000}) as (server, _), ExitStack() as opened:
        clients = [opened.enter_context(connect(server.url)) for _ in range(4)]
        refused = 0
        for client in clients:
            client.sendall(head)
            try:
                for _ in range(79):
                    client.sendall(bytes(100_000))
            except OSError:  # the connection was closed
                refused += 1
        assert server.get("").body == SMALL
        for client in clients[:2]:  # the first are not given up for the last
            client.sendall(bytes(100_000))
            read_to(client, b"8000000")
        assert refused or b" 503 " in read_all(clients[-1])
