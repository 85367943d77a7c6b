"""Memory of this process and its children on Linux, and the limit of its cgroup, from /proc.

Elsewhere there are no figures. /proc/self/smaps_rollup is not read: it takes 0.1 ms in a small process, and 10 ms for
each GB of small pages; the fields here take 4 microseconds in processes of any size.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import partial

from tb_memplugin.capture.watching.counters import NO_COUNTERS, Reading
from tb_memplugin.capture.watching.paced import Paced
from tb_memplugin.model.kinds import HOST_MEMORY
from tb_memplugin.readers.common.limits import MAX_BYTES
from tb_memplugin.readers.watch_layout import UNKNOWN, CounterSource, MemoryPart, WatchedDevice

HOST = WatchedDevice(HOST_MEMORY, CounterSource.PROC)
SLOW_SECONDS = 10.0  # between two searches for child processes and cgroups
MAX_CHILDREN = 256
MAX_READ = 1 << 16  # bytes at once
FIELD = re.compile(rb"^(VmRSS|RssAnon|RssShmem|MemTotal|MemAvailable):\s*(\d+) kB$", re.MULTILINE)


# Of a cgroup: the files of bytes in use and of the limit, and memory.stat's field of the cache that is reclaimed first.
Version = tuple[str, str, bytes]
VERSION_1: Version = "memory.usage_in_bytes", "memory.limit_in_bytes", b"total_inactive_file"
VERSION_2: Version = "memory.current", "memory.max", b"inactive_file"


class HostMemory:
    """The host's memory. `root`: the folder of /proc, /sys and /dev."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._children = Paced(partial(_descendants, self._path("proc"), os.getpid()), SLOW_SECONDS)
        self._cgroups = Paced(self._find_cgroups, SLOW_SECONDS)
        self._read = Paced(self._reading)

    def read(self) -> list[Reading]:
        """Return the reading of the host; none where there is no /proc of Linux."""
        return self._read()

    def _path(self, *names: str) -> str:
        return os.path.join(self._root, *names)

    def _reading(self) -> list[Reading]:
        own, machine = _fields(self._path("proc", "self", "status")), _fields(self._path("proc", "meminfo"))
        if b"VmRSS" not in own or b"MemTotal" not in machine:
            return []
        rss = own[b"VmRSS"]
        private = own.get(b"RssAnon", rss)
        shm = _used_of(self._path("dev", "shm"))
        of_children = [_fields(self._path("proc", pid, "status")) for pid in self._children()]
        children = sum(fields.get(b"RssAnon", 0) for fields in of_children)
        total = machine[b"MemTotal"]
        whole = total - machine.get(b"MemAvailable", 0), total
        rooms = [whole, *(room for cgroup in self._cgroups() if (room := _room(*cgroup)) is not None)]
        used, limit = min(rooms, key=lambda room: room[1] - room[0])
        parts: dict[str, int] = {
            MemoryPart.RSS: rss,
            MemoryPart.PRIVATE: private,
            MemoryPart.SHARED: max(rss - private - min(own.get(b"RssShmem", 0), shm), 0),
            MemoryPart.CHILDREN: children,
            MemoryPart.SHM: shm,
            MemoryPart.USED: used,
            MemoryPart.TOTAL: total,
        }
        counters = private + children + shm, UNKNOWN, limit, *NO_COUNTERS[3:]
        return [Reading(HOST, counters, parts)]

    def _find_cgroups(self) -> list[tuple[str, Version]]:
        """Return the folders of this process's cgroups, the innermost first."""
        mounts, own = (
            _content(self._path("proc", "self", name), b"").decode("utf-8", "replace")
            for name in ("mountinfo", "cgroup")
        )
        found: list[tuple[str, Version]] = []
        for line in own.splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "" or "memory" in controllers.split(","):
                version = VERSION_2 if controllers == "" else VERSION_1
                folders = _folders(path, mounts.splitlines(), version)
                found += [(self._path(folder.lstrip("/")), version) for folder in folders]
        return found


def _folders(path: str, mounts: Iterable[str], version: Version) -> list[str]:
    """Return the folder of a cgroup and of each cgroup around it that is visible here."""
    for mount in mounts:
        before, _, after = mount.partition(" - ")
        root, point = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup2" if version is VERSION_2 else kind == "cgroup" and "memory" in options.split(","):
            inside = path.removeprefix(root.rstrip("/")) if f"{path}/".startswith(f"{root.rstrip('/')}/") else ""
            names = [name for name in inside.split("/") if name and name != ".."]
            return ["/".join([point, *names[:depth]]) for depth in range(len(names), -1, -1)]
    return []


def _room(folder: str, version: Version) -> tuple[int, int] | None:
    """Return the bytes in use and the limit of a cgroup; None where it has no limit."""
    used, limit, cache = version
    try:
        bound = int(_content(os.path.join(folder, limit)))  # "max" is no number
        found = re.search(rb"^%s (\d+)$" % cache, _content(os.path.join(folder, "memory.stat")), re.MULTILINE)
        in_use = int(_content(os.path.join(folder, used))) - (int(found[1]) if found else 0)
    except (OSError, ValueError):
        return None
    return (max(in_use, 0), bound) if bound <= MAX_BYTES else None  # version 1 has 2^63 for no limit


def _descendants(proc: str, pid: int) -> list[str]:
    """Return the ids of child processes, and of theirs. Kernels without this list have none."""
    found, seen = [str(pid)], 0
    while seen < len(found) <= MAX_CHILDREN:
        tasks = os.path.join(proc, found[seen], "task")
        seen += 1
        try:
            threads = os.listdir(tasks)
        except OSError:  # ended meanwhile
            continue
        for thread in threads:
            found += _content(os.path.join(tasks, thread, "children"), b"").decode().split()
    return found[1 : MAX_CHILDREN + 1]


def _fields(path: str) -> dict[bytes, int]:
    """Return fields in bytes; none where the file is missing, as for a process that has ended."""
    return {name: int(value) << 10 for name, value in FIELD.findall(_content(path, b""))}


def _used_of(folder: str) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _content(path: str, missing: bytes | None = None) -> bytes:
    """Return a file's bytes, without Python's buffers, which take longer than the kernel. OSError without `missing`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            return b"".join(iter(lambda: os.read(descriptor, MAX_READ), b""))
        finally:
            os.close(descriptor)
    except OSError:
        if missing is None:
            raise
        return missing
