"""The samples of a process: the newest in full, older ones at a resolution that falls with their age, and their file.

Records are appended to the file, each completely or not at all, so that it is complete whenever the process ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tb_memplugin.capture.guard import SlowFailures
from tb_memplugin.capture.new_files import create_file, is_remote, replace_file
from tb_memplugin.capture.watching.counters import NO_COUNTERS
from tb_memplugin.model.arrays import I64
from tb_memplugin.readers.common.limits import MAX_DEVICES
from tb_memplugin.readers.watch_layout import (
    INTEGER,
    MAX_COLUMNS,
    UNKNOWN,
    NamedColumn,
    RecordColumn,
    RecordEvent,
    WatchedDevice,
    WatchHeader,
    first_column,
)

FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class AppendFile:
    """A file that is written without a buffer, so that it is complete whenever the process ends."""

    def __init__(self, path: str) -> None:
        """OSError where the file cannot be opened. It is created where it does not exist."""
        self.path = path
        self._descriptor = os.open(path, FLAGS, 0o666)
        self._size = os.fstat(self._descriptor).st_size

    def write(self, data: bytes) -> None:
        """Append `data`. OSError where that fails; what a full disk took of it is removed again."""
        rest = memoryview(data)
        try:
            while rest:  # a full disk takes a part, and refuses the rest with the reason
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def close(self) -> None:
        os.close(self._descriptor)


# The newest FULL samples are all kept; the distance between older ones is about their age divided by FULL. So the
# number of samples grows with the logarithm of the time: at one a second, there are at most 11,000 after a day and
# 19,000 after a month. A sample takes 32 bytes, 40 for each device, and 8 for each named column.
FULL = 1024
FIRST_LIMIT = 4 * FULL  # records that are kept before the first thinning
NO_COLUMNS: Mapping[NamedColumn, int] = MappingProxyType({})


class Curve:
    """Records of samples, one row each, in the layout of readers/watch_layout.py."""

    def __init__(self, start_ns: int, interval_ns: int) -> None:
        self.header = WatchHeader(start_ns, interval_ns, ())
        self._rows = np.empty((64, self.header.width), np.int64)
        self.count = 0
        self._limit = FIRST_LIMIT
        self.version = 0  # grows when earlier records are changed or removed

    def add(
        self,
        head: tuple[int, ...],
        counters: Mapping[WatchedDevice, tuple[int, ...]],
        named: Mapping[NamedColumn, int] = NO_COLUMNS,
    ) -> None:
        """Add a record. `head`: the columns of RecordColumn. Devices and names that are new get columns in all records.

        A device with another source than before is left out: its figures mean something else.
        """
        names = {device.name for device in self.header.devices}
        devices = [device for device in counters if device.name not in names][: MAX_DEVICES - len(names)]
        columns = [column for column in named if column not in self.header.columns]
        columns = columns[: MAX_COLUMNS - len(self.header.columns)]  # no file may have more
        if devices or columns:
            self._widen(devices, columns)
        if self.count >= self._limit:
            self._thin(head[RecordColumn.TIME])
        if self.count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        known = [counters.get(device, NO_COUNTERS) for device in self.header.devices]
        values = [named.get(column, UNKNOWN) for column in self.header.columns]
        self._rows[self.count] = (*head, *(value for device in known for value in device), *values)
        self.count += 1

    def records(self, begin: int = 0) -> bytes:
        """Return the records from a number on, as in a file."""
        return self._rows[begin : self.count].astype(INTEGER).tobytes()

    def content(self) -> bytes:
        """Return the whole file."""
        return self.header.line() + self.records()

    def _widen(self, devices: Iterable[WatchedDevice], columns: Iterable[NamedColumn]) -> None:
        before = self.header
        self.header = replace(before, devices=(*before.devices, *devices), columns=(*before.columns, *columns))
        wider = np.full((len(self._rows), self.header.width), UNKNOWN, np.int64)
        old, new = first_column(len(before.devices)), first_column(len(self.header.devices))
        wider[:, :old] = self._rows[:, :old]
        wider[:, new : new + len(before.columns)] = self._rows[:, old:]
        self._rows = wider
        self.version += 1

    def _thin(self, now_ns: int) -> None:
        kept = thin(self._rows[: self.count], now_ns, self.header.start_ns, self.header.interval_ns)
        self._rows[: len(kept)] = kept
        self.count = len(kept)
        self._limit = max(FIRST_LIMIT, self.count + self.count // 2)
        self.version += 1


def thin(rows: I64, now_ns: int, start_ns: int, interval_ns: int) -> I64:
    """Return rows at a resolution that falls with their age.

    Time is divided into periods, whose length doubles with the age. Of a period with more than two samples, two remain:
    the smallest and then the largest of each counter. Other events than samples remain as they are.
    """
    time = rows[:, RecordColumn.TIME]
    age = np.maximum((now_ns - time) // interval_ns // FULL, 1)
    length = interval_ns << np.floor(np.log2(age)).astype(np.int64)
    period = (time - start_ns) // (2 * length)
    special = rows[:, RecordColumn.EVENT] != RecordEvent.SAMPLE
    begins = (np.diff(period, prepend=-1) != 0) | (np.diff(length, prepend=0) != 0) | special
    begins[1:] |= special[:-1]
    at = np.flatnonzero(begins)
    size = np.diff(at, append=len(rows))
    low, high = np.minimum.reduceat(rows, at), np.maximum.reduceat(rows, at)
    head = len(RecordColumn)
    low[:, :head], high[:, :head] = rows[at, :head], rows[at + size - 1, :head]
    pairs = np.stack([low, high], axis=1).reshape(-1, rows.shape[1])
    keep = np.stack([np.ones(len(at), bool), size > 1], axis=1).ravel()
    kept: I64 = pairs[keep]
    return kept


# Remote stores cannot append to a file, so the whole file is written, once in this time.
REMOTE_SECONDS = 60.0
RETRY_SECONDS = 30.0  # after a failure to write the whole file, as on a full disk


class CurveFile:
    """A local file that grows with its curve, or a remote one that is replaced once a minute."""

    def __init__(self, path: Callable[[], str]) -> None:
        """`path` is called when there is something to write; it may create folders, and fail."""
        self._make_path = path
        self.path = ""
        self._remote = False
        self._file: AppendFile | None = None
        self._version = -1  # of the curve that is in the file
        self._count = 0  # records in the file
        self._next = float("-inf")
        self._failures = SlowFailures()

    def write(self, curve: Curve, *, last: bool = False) -> None:
        """Write the records that are new. OSError, and others from stores, where that fails; the next call repeats it.

        `last`: the process ends, so there is no next call.
        """
        if self._version == curve.version and self._file is not None and os.path.exists(self.path):
            self._file.write(curve.records(self._count))
            self._count = curve.count
        elif last or (time.monotonic() >= self._next and not self._failures.is_pausing):
            self._next = time.monotonic() + RETRY_SECONDS
            with self._failures.attempt():
                self._write_whole(curve)
            self._next = time.monotonic() + REMOTE_SECONDS if self._remote else float("-inf")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_whole(self, curve: Curve) -> None:
        content, version, count = curve.content(), curve.version, curve.count
        self.close()  # Windows replaces no open file
        if not self.path:
            self.path = create_file(self._make_path(), content)
            self._remote = is_remote(self.path)
        else:
            replace_file(self.path, content)
        if not self._remote:
            self._file = AppendFile(self.path)
        self._version, self._count = version, count
