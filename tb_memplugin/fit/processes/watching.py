"""Waiting for a process that compiles, within limits of time and memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import BinaryIO, Protocol

from tb_memplugin.fit.compile_task import Limits
from tb_memplugin.fit.processes.process import Process, machine_bytes, resident_bytes
from tb_memplugin.sizes import bytes_text

POLL_SECONDS = 0.02
LOOK_AROUND_SECONDS = 0.5  # between looks at all processes of the machine, for descendants: 5 ms each
MAX_PRINTED = 64 << 20
SHARE = 0.9  # of the machine's memory, for all compilations together
SHAPES = "pass jax.ShapeDtypeStruct in place of arrays"

_of_thread = threading.local()


class Stop(Protocol):
    """An event that ends compilations."""

    def is_set(self) -> bool:
        """Return whether it has happened."""


def work_in_thread(stopped: Stop, jobs: int) -> None:
    """Make the compilations of this thread end at an event, and leave memory for the other jobs."""
    _of_thread.stopped = stopped
    _of_thread.jobs = jobs


def wait_for(process: Process, limits: Limits, is_done: Callable[[], bool], printed: BinaryIO) -> str:
    """Wait until a process has ended or is done. Return why it has to end before that, else nothing."""
    stopped: Stop | None = getattr(_of_thread, "stopped", None)
    begun = time.monotonic()
    looked, most = begun, limits.bytes or default_bytes(getattr(_of_thread, "jobs", 1))
    while process.status() is None and not is_done():
        now = time.monotonic()
        if stopped is not None and stopped.is_set():
            raise CancelledError
        if now - begun > limits.seconds:
            return f"No program after {limits.seconds:g} s: give it longer with --timeout SECONDS"
        everywhere = now - looked > LOOK_AROUND_SECONDS
        looked = now if everywhere else looked
        if most is not None and resident_bytes(process.pid, everywhere) > most:
            return f"Takes more than {bytes_text(most)} of this machine's memory: {SHAPES}, or allow --memory SIZE"
        if os.fstat(printed.fileno()).st_size > MAX_PRINTED:
            os.ftruncate(printed.fileno(), 0)
        time.sleep(POLL_SECONDS)
    return ""


def default_bytes(jobs: int) -> int | None:
    """Return the resident memory that each of so many compilations may take; None where it is not known."""
    machine = machine_bytes()
    return int(machine * SHARE / jobs) if machine is not None else None
