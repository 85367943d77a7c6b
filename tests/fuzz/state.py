"""The state of a worker, in a mapped file: the input being tried survives the worker, whatever ends it."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

HEADER = struct.Struct("<QQQQdQ")
MAX_BYTES = 4 << 20


class Progress(NamedTuple):
    """Counts of a worker's inputs; `number` is of the one being tried, `slowest` in seconds of processor time."""

    number: int = 0
    tried: int = 0
    answered: int = 0
    faults: int = 0
    slowest: float = 0.0


class State:
    """A mapped file with the progress and the current input."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(HEADER.size + MAX_BYTES))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), HEADER.size + MAX_BYTES)

    def begin(self, progress: Progress, data: bytes) -> None:
        """Save an input before it is tried."""
        HEADER.pack_into(self._map, 0, *progress, len(data))
        self._map[HEADER.size : HEADER.size + len(data)] = data

    def end(self, progress: Progress) -> None:
        HEADER.pack_into(self._map, 0, *progress, 0)

    def read(self) -> tuple[Progress, bytes]:
        """Return the progress and the input that was being tried, empty between two inputs."""
        *counts, length = HEADER.unpack_from(self._map)
        return Progress(*counts), self._map[HEADER.size : HEADER.size + length]

    def close(self) -> None:
        self._map.close()
