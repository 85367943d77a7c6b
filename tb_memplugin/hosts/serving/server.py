"""The web server: waitress, with limits that slow, idle and greedy clients cannot exhaust.

One thread reads requests and sends answers, so a client that is slow at either occupies no thread of the app. A request
must arrive within a time limit, and a connection that is idle is closed, sooner while there are many.

Pools of threads by what requests read keep slow answers from delaying the others. A thread of the first pool asks the
app what each request reads. It answers those that read nothing, and passes others to the pool of their kind. No thread
waits for an answer that another one makes.
"""

from __future__ import annotations

import ctypes
import logging
import signal
import socket
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher, WSGITask
from waitress.utilities import Error

from tb_memplugin.errors import Abandoned, abandoned_when
from tb_memplugin.hosts import http_messages
from tb_memplugin.questions.asking.source import Reads

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


# Returns what a request reads, or a future that is done when another thread has made the answer.
ReadsOf = Callable[["WSGIEnvironment"], Reads | Future[None]]

THREADS = {Reads.NOTHING: 4, Reads.LISTING: 4, Reads.SMALL_FILES: 8, Reads.LARGE_FILES: 8}


class FairQueue:
    """Tasks in the order in which clients take turns: a client with many requests delays others by one of them.

    Has the interface that waitress's dispatchers use of a deque.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Any]] = OrderedDict()  # by client, the one whose turn it is first

    def append(self, task: Any) -> None:
        self._waiting.setdefault(task.client, deque()).append(task)

    def popleft(self) -> Any:
        client, tasks = self._waiting.popitem(last=False)
        task = tasks.popleft()
        if tasks:
            self._waiting[client] = tasks
        return task

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))


class Pools:
    """Dispatches the requests of channels; has the interface of waitress's dispatchers."""

    def __init__(self, reads_of: ReadsOf) -> None:
        self._reads_of = reads_of
        self._pools = {reads: ThreadedTaskDispatcher() for reads in THREADS}
        for reads, pool in self._pools.items():
            pool.queue = FairQueue()
            pool.set_thread_count(THREADS[reads])

    def add_task(self, channel: Any) -> None:
        self._pools[Reads.NOTHING].add_task(_Sorting(channel, self))

    def answer(self, channel: Any) -> None:
        """Answer a request that reads nothing. Pass another one to its pool, or wait until its answer is made."""
        request = channel.requests[0]
        try:
            reads = Reads.NOTHING if request.error else self._reads_of(WSGITask(channel, request).get_environment())
        except Exception:  # which the app answers with an error
            reads = Reads.LARGE_FILES
        if reads is Reads.NOTHING:
            channel.service()
        elif isinstance(reads, Reads):
            self._pools[reads].add_task(channel)
        else:
            reads.add_done_callback(lambda _: self.add_task(channel))

    def shutdown(self, timeout: float) -> None:
        for pool in self._pools.values():
            pool.shutdown(timeout=timeout)


class _Sorting:
    """The task of the first pool for a channel; has the interface of waitress's tasks."""

    def __init__(self, channel: Any, pools: Pools) -> None:
        self._channel = channel
        self._pools = pools
        self.client = channel.client

    def service(self) -> None:
        self._pools.answer(self._channel)

    def cancel(self) -> None:
        self._channel.cancel()


M_ARENA_MAX = -8  # of glibc's mallopt; other C libraries ignore it, or have no mallopt
HEAPS = 2


def share_heaps() -> None:
    """Let all threads but the first share a heap.

    glibc gives each thread a heap of its own, and memory that one thread freed is not used by the others: the Overview
    of 500,000 buffers, whose requests different threads answer, took 60 MB more.
    """
    with suppress(AttributeError, OSError, TypeError):  # Windows has no library of the process
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)


MAX_CONNECTIONS = 1000
IDLE_SECONDS = 60  # browsers keep connections for their next request
REQUEST_SECONDS = 20  # until the headers are complete
BODY_SECONDS = 120  # until the body is complete: 16 MiB at 1 Mbit/s
MAX_ARRIVED_BYTES = 256 << 20  # of the bodies of all requests that are arriving or wait
CROWDED = 0.75  # above this share of all connections, idle ones are closed after CROWDED_SECONDS
CROWDED_SECONDS = 3
MAX_HEADER_BYTES = 64 << 10
SHUTDOWN_SECONDS = 1
# A request releases Python's lock dozens of times, for example to list a folder, and may wait this long for it each
# time while another thread computes. With Python's 5 ms, 100 clients got a fifth of the answers per second.
SWITCH_SECONDS = 0.0002
# Beyond this size, an answer that a client has not received yet is kept in a file.
MAX_UNSENT_BYTES = 4 << 20
NEVER = 1 << 60


class _Request(HTTPRequestParser):  # type: ignore[misc]
    """One request. A request that cannot be read has an empty path in waitress's log."""

    path = ""


class _Channel(HTTPChannel):  # type: ignore[misc]
    """One connection, with one request at a time."""

    parser_class = _Request
    arriving_since = 0.0  # the first byte of a request that is not complete

    @property
    def client(self) -> str:
        """Return the address of the client's machine; empty where the socket has none."""
        return str(self.addr[0]) if self.addr else ""

    def readable(self) -> bool:
        """Return whether to read. While a request is answered, this notices that the client has gone."""
        return bool(self.connected and super().readable())

    def received(self, data: bytes) -> bool:
        if self.request is None:
            self.arriving_since = time.time()
        elif self.request.headers_finished and not self._has_room(self.request):
            self.request.error, self.request.completed = _TooManyBodies("try again when they have arrived"), True
        return bool(super().received(data))

    def _has_room(self, request: Any) -> bool:
        """Return whether there is room for a request's body beside those that were admitted before it.

        A body that does not state its length is asked again as it arrives, and so is refused in place of others.
        """
        if request.chunked or not getattr(request, "has_room", False):
            request.has_room = False
            request.has_room = self.server.admitted_bytes() + _body_bytes(request) <= MAX_ARRIVED_BYTES
        return bool(request.has_room)

    @property
    def admitted_bytes(self) -> int:
        """Return the bytes of the bodies that have room on this connection, with what has yet to arrive."""
        with self.requests_lock:
            requests = [self.request, *self.requests]
        return sum(_body_bytes(request) for request in requests if getattr(request, "has_room", False))

    def service(self) -> None:
        """Answer a request. Others that were sent with it are dropped, or a few bytes could order any amount of memory.

        No browser sends them; other clients repeat them after the connection is closed.
        """
        if len(self.requests) > 1:
            with self.requests_lock:
                for dropped in self.requests[1:]:
                    dropped.close()
                del self.requests[1:]
            self.requests[0].headers["CONNECTION"] = "close"
        with abandoned_when(lambda: not self.connected):
            super().service()

    def handle_error(self) -> None:
        """Close a connection on which something arrived that waitress cannot read; it would print a traceback."""
        self.handle_close()

    def is_overdue(self, now: float, crowded: bool) -> bool:
        """Return whether the client has made the connection wait for too long."""
        if self.requests:
            return False  # it waits for us
        limit = IDLE_SECONDS
        since = self.last_activity
        if self.request is not None:
            limit = BODY_SECONDS if self.request.headers_finished else REQUEST_SECONDS
            since = self.arriving_since
        return bool(now - since > (min(limit, CROWDED_SECONDS) if crowded else limit))


def _with_clients_that_leave(app: WSGIApplication) -> WSGIApplication:
    """Return an app that ends as waitress expects where the client has gone while a file was read."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return app(environ, start_response)
        except Abandoned:
            raise ClientDisconnected from None

    return answer


def _body_bytes(request: Any) -> int:
    """Return the length that a request states of its body, or what has arrived of one without."""
    return max(int(request.content_length), int(request.body_bytes_received))


class _TooManyBodies(Error):  # type: ignore[misc]
    code, reason = 503, "Too many bodies are being sent"


class _Server(TcpWSGIServer):  # type: ignore[misc]
    """One listening socket."""

    channel_class = _Channel

    def admitted_bytes(self) -> int:
        return sum(channel.admitted_bytes for channel in list(self.active_channels.values()))

    def maintenance(self, now: float) -> None:
        crowded = len(self._map) > CROWDED * self.adj.connection_limit
        for channel in list(self.active_channels.values()):
            if channel.is_overdue(now, crowded):
                channel.will_close = True


def serve(
    app: WSGIApplication, sockets: Sequence[socket.socket], ready: Callable[[], object], reads_of: ReadsOf
) -> None:
    """Serve an app on listening sockets until Ctrl+C or SIGTERM. `ready` is called first.

    `reads_of` returns what a request to the app reads, which chooses the threads that answer it.
    """
    logging.getLogger("waitress").setLevel(logging.ERROR)  # it warns when requests wait for a thread
    adjustments = Adjustments(
        connection_limit=_most_connections(),
        cleanup_interval=1,
        max_request_header_size=MAX_HEADER_BYTES,
        max_request_body_size=http_messages.MAX_BODY_BYTES + 1,
        outbuf_overflow=MAX_UNSENT_BYTES,
        outbuf_high_watermark=NEVER,  # otherwise a thread would wait for a client
        asyncore_use_poll=True,
        channel_request_lookahead=1,  # so that a connection is watched while its request is answered
        log_socket_errors=False,
        ident=None,
    )
    sys.setswitchinterval(SWITCH_SECONDS)
    share_heaps()
    connections: dict[int, Any] = {}
    dispatcher = Pools(reads_of)
    for listening in sockets:
        info = (listening.family, listening.type, listening.proto, listening.getsockname())
        own = {"dispatcher": dispatcher, "adj": adjustments, "sockinfo": info, "bind_socket": False}
        _Server(_with_clients_that_leave(app), connections, _sock=listening, **own)
    try:
        with _interrupted_by_sigterm():
            ready()
            wasyncore.loop(timeout=1, map=connections, use_poll=True)
    except KeyboardInterrupt:
        pass
    finally:
        logging.getLogger("waitress").setLevel(logging.CRITICAL + 1)  # it reports connections that are closed here
        wasyncore.close_all(connections, ignore_all=True)
        dispatcher.shutdown(timeout=SHUTDOWN_SECONDS)


def _most_connections() -> int:
    """Return the number of connections that leaves half of the process's files for everything else."""
    try:
        import resource
    except ImportError:  # Windows, where select() takes 512 sockets
        return 400
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, files // 2)


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Treat SIGTERM as Ctrl+C. Other threads than the main one cannot handle signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
