"""Lanes of threads, so that answers that are there do not wait for answers that must be made.

Each request starts in the first lane. Where the app may not go on in its lane it raises PostponedError, and the request
is answered again in the next one, or once another thread is done. No thread waits for what another one makes. Apps know
their lane from `lane_of`; under other servers there is none.
"""

from __future__ import annotations

from concurrent.futures import Future
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from waitress.task import ThreadedTaskDispatcher, WSGITask

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

LANE = "tb_memplugin.lane"


class Lane(IntEnum):
    """What an app may do in a lane, besides all of those before."""

    QUICK = 0  # send what is there
    SEARCH = 1  # search the logdir
    SLOW = 2  # read files and make answers


THREADS = {Lane.QUICK: 4, Lane.SEARCH: 4, Lane.SLOW: 12}


class PostponedError(Exception):
    """The app may not go on in this lane: answer the request again in the next lane, or when another thread is done."""

    def __init__(self, until: Future[None] | None = None) -> None:
        super().__init__()
        self.until = until


def lane_of(environ: WSGIEnvironment) -> Lane | None:
    return environ.get(LANE)


class LaneTask(WSGITask):  # type: ignore[misc]
    """The answer to one request, in the lane of its channel."""

    def execute(self) -> None:
        self.get_environment()[LANE] = self.channel.lane
        super().execute()

    def service(self) -> None:
        try:
            super().service()
            self.channel.lane = Lane.QUICK
        except PostponedError as postponed:  # before anything was written
            self.channel.postpone(self.request, postponed.until)


class Lanes:
    """Dispatches the requests of channels; has the interface of waitress's dispatchers."""

    def __init__(self) -> None:
        self._lanes = {lane: ThreadedTaskDispatcher() for lane in Lane}
        for lane, dispatcher in self._lanes.items():
            dispatcher.set_thread_count(THREADS[lane])

    def add_task(self, channel: Any) -> None:
        request = channel.requests[0]
        if not request.error and request.command not in ("GET", "HEAD"):
            channel.lane = Lane.SLOW
        until, channel.until = channel.until, None
        if until is not None:
            until.add_done_callback(lambda _: self.add_task(channel))
        else:
            self._lanes[channel.lane].add_task(channel)

    def shutdown(self, timeout: float) -> None:
        for lane in self._lanes.values():
            lane.shutdown(timeout=timeout)
