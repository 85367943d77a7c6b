"""A cache of listings that is bounded by the memory that they really hold, results of analyses included."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tb_memplugin.catalog.held_bytes import held_bytes
from tb_memplugin.catalog.listing import Listing
from tb_memplugin.model.recording import Recording


class FileVersion(NamedTuple):
    """A version of a file, as a part of a run."""

    path: str
    stamp: str
    run: str


@dataclass(slots=True)
class _Cached:
    listing: Listing
    nbytes: int
    parts_read: int  # when it was measured


class ListingCache:
    """Listings of files, the latest used last. Methods may be called from any thread."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._cached: OrderedDict[FileVersion, _Cached] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Return how many bytes the listings held when they were last used."""
        with self._lock:
            return sum(cached.nbytes for cached in self._cached.values())

    def get(self, version: FileVersion) -> Listing | None:
        with self._lock:
            if (cached := self._cached.get(version)) is None:
                return None
            self._cached.move_to_end(version)
        # What earlier answers made of it counts now.
        if (parts := _parts_read(cached.listing)) != cached.parts_read:
            cached.nbytes, cached.parts_read = held_bytes(cached.listing.recordings), parts
            self._evict()
        return cached.listing

    def add(self, version: FileVersion, listing: Listing) -> None:
        """Keep a listing, in place of those of earlier versions of its file."""
        added = _Cached(listing, held_bytes(listing.recordings), _parts_read(listing))
        with self._lock:
            for old in [old for old in self._cached if (old.path, old.run) == (version.path, version.run)]:
                del self._cached[old]
            self._cached[version] = added
        self._evict()

    def _evict(self) -> None:
        """Drop the listings that were not used for the longest time. The latest stays, whatever its size."""
        dropped = []
        with self._lock:
            total = sum(cached.nbytes for cached in self._cached.values())
            while total > self._max_bytes and len(self._cached) > 1:
                _, cached = self._cached.popitem(last=False)
                total -= cached.nbytes
                dropped.append(cached.listing)
        for listing in dropped:
            for recording in _with_outlines(listing):
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
