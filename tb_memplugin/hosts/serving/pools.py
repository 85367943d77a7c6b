"""Pools of threads by what requests read, so that answers that are there do not wait for answers that must be made.

A thread of the first pool asks the app what each request reads. It answers those that read nothing, and passes others
to the pool of their kind. No thread waits for an answer that another one makes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from waitress.task import ThreadedTaskDispatcher, WSGITask

from tb_memplugin.questions.asking.source import Reads

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

# What a request reads, or what ends when another thread has made its answer.
ReadsOf = Callable[["WSGIEnvironment"], Reads | Future[None]]

THREADS = {Reads.NOTHING: 4, Reads.LISTING: 4, Reads.SMALL_FILES: 8, Reads.LARGE_FILES: 8}


class Pools:
    """Dispatches the requests of channels; has the interface of waitress's dispatchers."""

    def __init__(self, reads_of: ReadsOf) -> None:
        self._reads_of = reads_of
        self._pools = {reads: ThreadedTaskDispatcher() for reads in THREADS}
        for reads, pool in self._pools.items():
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

    def service(self) -> None:
        self._pools.answer(self._channel)

    def cancel(self) -> None:
        self._channel.cancel()
