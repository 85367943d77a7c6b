"""Processes that compile: started in a group of their own, watched within limits of time and memory, and ended.

A process is ended with everything that it started.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Protocol

from tb_memplugin.fit.compile_task import Limits
from tb_memplugin.sizes import bytes_text

PR_SET_CHILD_SUBREAPER = 36  # of Linux
IS_POSIX = os.name == "posix"


class Process(Protocol):
    """A process that compiles, and the group that it leads."""

    pid: int

    def status(self) -> int | None:
        """Return the exit status, negative for a signal; None while the process runs."""

    def end(self) -> None:
        """Kill the process with everything that it started, and release it."""


class StartedProcess:
    """A process from a command. It ends when the pipe at its standard input closes, as when this process dies."""

    def __init__(self, command: list[str], output: BinaryIO, environment: Mapping[str, str]) -> None:
        self._popen = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=IS_POSIX,
        )
        self.pid = self._popen.pid

    def status(self) -> int | None:
        if self._popen.returncode is not None or not hasattr(os, "waitid"):
            return self._popen.poll()
        return exit_status(self.pid)

    def end(self) -> None:
        if self._popen.returncode is None:
            kill_tree(self.pid)
            if not IS_POSIX:
                self._popen.kill()
            self._popen.wait()
        if self._popen.stdin is not None:
            with suppress(OSError):
                self._popen.stdin.close()


def exit_status(pid: int) -> int | None:
    """Return the exit status of a child, but keep the zombie: its id is its group's, and must not be reused."""
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def end_with_parent(pipe: int) -> None:
    """End this process and its group once the other end of the pipe closes."""

    def end_group() -> None:
        os.read(pipe, 1)  # nothing, once it is closed
        if IS_POSIX:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)

    if sys.platform == "linux":  # the kernel ends it even while a compiler runs and Python does not
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([pipe], [], [], 0)[0]:
            end_group()
        return
    threading.Thread(target=end_group, daemon=True).start()


def kill_tree(pid: int) -> None:
    """Kill a group by its leader, and the leader's descendants in other groups."""
    if not IS_POSIX:
        return
    others = descendants(pid)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for other in others:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(other, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends, so that processes that detach themselves can be found."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    """Return the processes that a process started, at any depth, and those of its session."""
    if sys.platform != "linux":
        import psutil

        with suppress(psutil.Error):  # ended
            return [child.pid for child in psutil.Process(pid).children(recursive=True)]
        return []
    parents, found = {}, {pid}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, IndexError):  # ended
            # After the name: state, parent, group, session.
            fields = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(name)] = int(fields[1])
            if int(fields[3]) == pid:
                found.add(int(name))
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {pid})


def resident_bytes(pid: int, with_descendants: bool = True) -> int:
    """Return the resident memory of a process and its descendants; 0 where it cannot be read."""
    if sys.platform != "linux":
        import psutil

        with suppress(psutil.Error):  # ended
            return sum(psutil.Process(one).memory_info().rss for one in (pid, *descendants(pid)))
        return 0
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for one in (pid, *(descendants(pid) if with_descendants else ())):
        with suppress(OSError, IndexError):
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * page
    return total


def machine_bytes() -> int | None:
    """Return the memory that this machine, or the container, has; None where it cannot be read."""
    sizes = []
    with suppress(ValueError, OSError, AttributeError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # "max": no limit
            sizes.append(int(Path(name).read_text()))
    return min((size for size in sizes if size > 0), default=None)


POLL_SECONDS = 0.02
LOOK_AROUND_SECONDS = 0.5  # between searches for descendants among all processes of the machine, which take 5 ms each
MAX_PRINTED = 64 << 20
SHARE = 0.9  # a choice: all compilations together may take this share of the machine's memory
SHAPES = "pass jax.ShapeDtypeStruct in place of arrays"


class Stop(Protocol):
    """A request to end compilations, such as a `threading.Event`. Each compilation gets one, and checks it."""

    def is_set(self) -> bool:
        """Return whether to stop."""


def wait_for(process: Process, limits: Limits, is_done: Callable[[], bool], printed: BinaryIO, stop: Stop) -> str:
    """Wait until a process has ended or is done. Return the limit that it exceeded, else nothing.

    CancelledError where it has to stop.
    """
    begun = looked = time.monotonic()
    most = limits.bytes
    while process.status() is None and not is_done():
        now = time.monotonic()
        if stop.is_set():
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


def with_share(limits: Limits, jobs: int) -> Limits:
    """Return limits with a size: their own, else this machine's memory divided by the number of jobs."""
    machine = machine_bytes()
    return limits if limits.bytes or machine is None else replace(limits, bytes=int(machine * SHARE / jobs))
