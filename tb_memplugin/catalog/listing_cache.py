"""A cache of listings that is bounded by the memory that they really hold, results of analyses included.

The memory is measured instead of declared, so that nothing new in a recording escapes the caches.
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from tb_memplugin.catalog.listing import Listing
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text, counted

# Shared by the whole process. What enumerations, classes and modules refer to belongs to no recording.
SHARED = (type, ModuleType, Enum, BuiltinFunctionType)


def held_bytes(roots: Iterable[object]) -> int:
    """Return the bytes of all objects that can be reached from the roots, each counted once.

    Arrays count with the memory that they are views of: one row of a table keeps the whole table. Objects of compiled
    modules count with their `nbytes`, where they have it.
    """
    waiting: list[Any] = list(roots)
    seen: set[int] = set()
    total = 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, SHARED):
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        waiting.extend(_referents(value))
        if not isinstance(value, (np.ndarray, np.generic, memoryview)):
            nbytes = getattr(value, "nbytes", 0)  # that `sys.getsizeof` leaves out: of C++ containers, and mapped files
            total += nbytes if type(nbytes) is int else 0
    return total


def _referents(value: Any) -> Iterable[Any]:
    if isinstance(value, (bytes, str, int, float)):
        return ()
    if isinstance(value, np.ndarray):
        return () if value.base is None else (value.base,)
    if isinstance(value, memoryview):
        return (value.obj,)
    if isinstance(value, FunctionType):  # not its globals
        return (value.__closure__, value.__defaults__)
    return gc.get_referents(value)


logger = logging.getLogger(__name__)


class FileVersion(NamedTuple):
    """A version of a file, as a part of a run. The title of a program depends on the other files of the run."""

    path: str
    stamp: str
    run: str
    title: str = ""


def file_version(file: HostFile, run: str) -> FileVersion:
    return FileVersion(file.path, file.stamp, run, file.program.title if file.program else "")


@dataclass(slots=True)
class _Cached:
    version: FileVersion
    listing: Listing
    nbytes: int
    parts_read: int  # when it was measured


class ListingCache:
    """Listings of files, the latest used last. Methods may be called from any thread."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._cached: OrderedDict[tuple[str, str], _Cached] = OrderedDict()  # by path and run
        self._total = 0
        self._dropped: dict[tuple[str, str], int] = {}  # bytes of listings that were dropped, by path and run

    @property
    def nbytes(self) -> int:
        """Return how many bytes the listings held when they were last used."""
        with self._lock:
            return self._total

    def __contains__(self, version: FileVersion) -> bool:
        cached = self._cached.get((version.path, version.run))
        return cached is not None and cached.version == version

    def get(self, version: FileVersion) -> Listing | None:
        key = version.path, version.run
        with self._lock:
            cached = self._cached.get(key)
            if cached is None or cached.version != version:
                return None
            self._cached.move_to_end(key)
        # What earlier answers made of it counts now.
        if _parts_read(cached.listing) != cached.parts_read:
            self.add(version, cached.listing)
        return cached.listing

    def add(self, version: FileVersion, listing: Listing) -> None:
        """Keep a listing, in place of that of an earlier version of its file."""
        parts = _parts_read(listing)  # before it is measured: others may use it
        added = _Cached(version, listing, held_bytes([listing]), parts)
        with self._lock:
            if (old := self._cached.pop((version.path, version.run), None)) is not None:
                self._total -= old.nbytes
            self._cached[version.path, version.run] = added
            self._total += added.nbytes
        self._evict()

    def keep_only(self, paths: Collection[str]) -> None:
        """Drop the listings of files that are gone."""
        with self._lock:
            for key in [key for key in self._cached if key[0] not in paths]:
                self._total -= self._cached.pop(key).nbytes
            self._dropped = {key: nbytes for key, nbytes in self._dropped.items() if key[0] in paths}

    def dropped_text(self, run: str, paths: Collection[str]) -> str:
        """Return a sentence about the files of a run that had to be read again; empty where there are none."""
        with self._lock:
            sizes = [nbytes for (path, of), nbytes in self._dropped.items() if of == run and path in paths]
        if not sizes:
            return ""
        which, size, limit = counted(len(sizes), "file"), bytes_text(sum(sizes)), bytes_text(self._max_bytes)
        return f"Read again: {which} ({size}) had been dropped, since recordings may take {limit} of memory."

    def _evict(self) -> None:
        """Drop the listings that were not used for the longest time. The latest stays, whatever its size."""
        dropped: list[tuple[str, _Cached]] = []
        with self._lock:
            while self._total > self._max_bytes and len(self._cached) > 1:
                key, cached = self._cached.popitem(last=False)
                self._total -= cached.nbytes
                self._dropped[key] = cached.nbytes
                dropped.append((key[0], cached))
        for path, cached in dropped:
            size, limit = bytes_text(cached.nbytes), bytes_text(self._max_bytes)
            text = "Dropped %r, %s, since recordings may take %s of memory: it is read again when it is opened"
            logger.warning(text, path, size, limit)
            for recording in _with_outlines(cached.listing):
                recording.memo.clear()  # a result may refer to its recording, which would delay its end


def _parts_read(listing: Listing) -> int:
    """Return a number that grows with everything that was computed of a listing, or read on access."""
    return sum(len(vars(recording)) + len(recording.memo) for recording in _with_outlines(listing)) + sum(
        recording.program.values.computed
        for recording in listing.recordings
        if recording.program is not None and recording.program.values is not None
    )


def _with_outlines(listing: Listing) -> Iterator[Recording]:
    for recording in listing.recordings:
        yield recording
        if recording.outline is not recording:
            yield recording.outline
