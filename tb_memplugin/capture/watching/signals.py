"""SIGUSR1 as a request for a snapshot."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

Restore = Callable[[], None]


def on_signal(request: Callable[[], None]) -> Restore:
    """Call `request` at SIGUSR1, then the job's own handler if it has one. Return a function that undoes this.

    Nothing is done outside the main thread, where Python sets no handlers, and where the job ignores the signal or
    handles it outside of Python.
    """
    number = getattr(signal, "SIGUSR1", None)  # Windows has none
    if number is None or threading.current_thread() is not threading.main_thread():
        return _nothing
    before = signal.getsignal(number)
    if before is None or before is signal.SIG_IGN:
        return _nothing

    def handle(received: int, frame: FrameType | None) -> None:
        request()
        if callable(before):
            before(received, frame)

    def restore() -> None:
        # Another handler that was set since then may call this one.
        if threading.current_thread() is threading.main_thread() and signal.getsignal(number) is handle:
            signal.signal(number, before)

    signal.signal(number, handle)
    return restore


def _nothing() -> None: ...
