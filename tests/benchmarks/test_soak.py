"""A short soak, and a short load, of a server on a logdir that changes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from benchmarks.load import main as load
from benchmarks.soak import growth, soak

T = TypeVar("T")


def in_thread(function: Callable[[], T]) -> T:
    """Call a function that runs an event loop: a test of the browser may have left one in this thread."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(function).result()


def test_memory_and_files_stay_flat_while_runs_come_and_go() -> None:
    figures, seen, runs = in_thread(partial(soak, "standalone", 10, clients=4, every_seconds=0.3))
    before, after, files_before, files_after = growth(figures)
    assert runs > 3 and len(seen.seconds) > 10
    # A run that is deleted or half written is no page; anything else would be a fault.
    assert {status for status in seen.statuses if status.isdigit()} <= {"200", "404"}
    assert after < before * 1.3 + 50
    assert files_after <= files_before + 10


def test_load_is_measured() -> None:
    in_thread(partial(load, ["--hosts", "standalone", "--clients", "10", "--seconds", "3", "--large-buffers", "1000"]))
