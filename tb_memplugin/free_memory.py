"""Free memory of this machine or its container."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import starmap
from pathlib import Path

from tb_memplugin.errors import ReadError
from tb_memplugin.sizes import bytes_text

# Groups of processes with a limit, and its files of the limit and the use: version 2 of cgroups, then version 1. Inside
# of a container these are its own.
CGROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)

# The free memory is looked up for larger needs only, as it takes 50 microseconds.
SMALL_BYTES = 32 << 20


def free_bytes() -> int | None:
    """Return the bytes that processes can still allocate without swapping; None where that cannot be found."""
    found = [size for size in (_of_machine(), *starmap(_of_group, CGROUPS)) if size is not None]
    return min(found, default=None)


def require(nbytes: int, path: str) -> None:
    """Raise ReadError where a file needs more than the free memory."""
    if nbytes > SMALL_BYTES and (free := free_bytes()) is not None and nbytes > free:
        what = f"not enough memory: reading takes {bytes_text(nbytes)} or more, and {bytes_text(free)} are free"
        raise ReadError(what, path, "end other programs, or open the file on a machine with more memory")


def _of_machine() -> int | None:
    with suppress(OSError, ValueError, KeyError):
        return _figures("/proc/meminfo", ":")["MemAvailable"] << 10
    with suppress(OSError, ValueError, AttributeError):  # half of it, since systems without /proc do not give more
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return None


def _of_group(folder: str, limit: str, used: str) -> int | None:
    """Return a group's limit without its use; cached files do not count, since the system drops them on demand."""
    with suppress(OSError, ValueError):  # "max": no limit
        most, now = (int(Path(folder, name).read_text("ascii")) for name in (limit, used))
        cached = _figures(f"{folder}/memory.stat", "")
        return max(0, most - now + cached.get("inactive_file", 0) + cached.get("active_file", 0))
    return None


def _figures(path: str, mark: str) -> dict[str, int]:
    lines = (line.split() for line in Path(path).read_text("ascii").splitlines())
    return {words[0].removesuffix(mark): int(words[1]) for words in lines if len(words) > 1}
