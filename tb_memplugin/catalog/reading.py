"""The progress of reading files, in bytes, and facts that are read once of each version of a file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeVar

from tb_memplugin import logdir
from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.logdir import HostFile

T = TypeVar("T")
Reader = Callable[[HostFile], T]


MAX_FACTS = 50_000  # of one kind


def read_once(failed: Callable[[HostFile, InputError], T]) -> Callable[[Reader[T]], Reader[T]]:
    """Let a function read each version of a file once. It returns what `failed` makes of an InputError.

    Failures of the disk and the network are not the file's own, and are not kept.
    """

    def decorate(read: Reader[T]) -> Reader[T]:
        @lru_cache(MAX_FACTS)
        def kept(file: HostFile) -> T:
            try:
                return read(file)
            except ReadError:
                raise
            except InputError as error:
                return failed(file, error)

        def read_or_find(file: HostFile) -> T:
            try:
                return kept(file)
            except ReadError as error:
                return failed(file, error)

        return read_or_find

    return decorate


class BytesRead(NamedTuple):
    """Bytes read, bytes of all files, and the seconds since the reading began; all 0 unless files are being read."""

    read: int = 0
    total: int = 0
    seconds: float = 0.0


@dataclass
class _Reading:
    sizes: dict[str, int] = field(default_factory=dict)  # by path
    read: dict[str, int] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    users: int = 0


class Progress:
    """The progress of the runs that are being read. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readings: dict[str, _Reading] = {}  # by run

    def of(self, run: str) -> BytesRead:
        with self._lock:
            return _sum([self._readings[run]] if run in self._readings else [])

    def of_all(self) -> BytesRead:
        with self._lock:
            return _sum(self._readings.values())

    @contextmanager
    def files(self, run: str, files: Iterable[HostFile]) -> Iterator[None]:
        """Count these files as read once they are, while the block runs."""
        with self._lock:
            reading = self._readings.setdefault(run, _Reading())
            reading.users += 1
            for file in files:
                reading.sizes.setdefault(file.path, file.size)
        try:
            yield
        finally:
            with self._lock:
                reading.users -= 1
                if not reading.users:
                    self._readings.pop(run, None)

    @contextmanager
    def file(self, run: str, file: HostFile) -> Iterator[None]:
        """Count the bytes of a file that the block reads, in this thread."""

        def advance(count: int) -> None:
            with self._lock:
                reading = self._readings[run]
                reading.read[file.path] = min(reading.read.get(file.path, 0) + count, file.size)

        with self.files(run, [file]):
            with logdir.counting(advance):
                yield
            self.finished(run, file)

    def finished(self, run: str, file: HostFile) -> None:
        """Count a file as read, such as one that was read before."""
        if run in self._readings:
            with self._lock:
                if (reading := self._readings.get(run)) is not None:
                    reading.read[file.path] = file.size


def _sum(readings: Iterable[_Reading]) -> BytesRead:
    every = list(readings)
    if not every:
        return BytesRead()
    read = sum(sum(reading.read.values()) for reading in every)
    total = sum(sum(reading.sizes.values()) for reading in every)
    return BytesRead(min(read, total), total, time.monotonic() - min(reading.began for reading in every))
