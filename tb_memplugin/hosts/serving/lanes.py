"""Two lanes of threads, so that answers that are there do not wait for answers that must be made.

Each request starts in the quick lane. Where the app cannot answer at once it raises PostponedError, and the request is
answered in the slow lane. Apps know from `is_quick` which lane they are in; under other servers they never are in one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waitress.task import ThreadedTaskDispatcher, WSGITask

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

QUICK = "tb_memplugin.quick"
QUICK_THREADS = 4
# More than readers of files: whoever waits for a file that another thread reads has a thread, too.
SLOW_THREADS = 16


class PostponedError(Exception):
    """The app cannot answer at once."""


def is_quick(environ: WSGIEnvironment) -> bool:
    return QUICK in environ


class QuickTask(WSGITask):  # type: ignore[misc]
    """The answer to one request, in the lane of its channel."""

    def execute(self) -> None:
        environ = self.get_environment()
        if not self.channel.is_slow and environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            environ[QUICK] = True
        super().execute()

    def service(self) -> None:
        try:
            super().service()
            self.channel.is_slow = False
        except PostponedError:  # before anything was written
            self.channel.postpone(self.request)


class Lanes:
    """Dispatches the requests of channels; has the interface of waitress's dispatchers."""

    def __init__(self) -> None:
        self._quick, self._slow = ThreadedTaskDispatcher(), ThreadedTaskDispatcher()
        self._quick.set_thread_count(QUICK_THREADS)
        self._slow.set_thread_count(SLOW_THREADS)

    def add_task(self, channel: Any) -> None:
        reads = channel.requests[0].error or channel.requests[0].command in ("GET", "HEAD")
        (self._quick if reads and not channel.is_slow else self._slow).add_task(channel)

    def shutdown(self, timeout: float) -> None:
        for lane in (self._quick, self._slow):
            lane.shutdown(timeout=timeout)
