"""The samples of a process in memory: the newest in full, older ones at a resolution that falls with their age."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.readers.common.limits import MAX_DEVICES
from tb_memplugin.readers.watch.header import WatchedDevice, WatchHeader
from tb_memplugin.readers.watch.layout import (
    INTEGER,
    UNKNOWN,
    RecordColumn,
    RecordEvent,
    integers_of_record,
)

# Samples are about their age / FULL apart, and the newest FULL are complete. So their number grows with the logarithm
# of the time: at one a second, at most 11,000 after a day and 19,000 after a month, of 32 bytes and 40 a device.
FULL = 1024
FIRST_LIMIT = 4 * FULL  # records that are kept before the first thinning


class Curve:
    """Records of samples, one row each, in the layout of readers/watch/layout.py."""

    def __init__(self, start_ns: int, interval_ns: int) -> None:
        self.header = WatchHeader(start_ns, interval_ns, ())
        self._rows = np.empty((64, integers_of_record(0)), np.int64)
        self.count = 0
        self._limit = FIRST_LIMIT
        self.version = 0  # grows when records that were there before are changed

    def add(self, head: tuple[int, ...], counters: dict[WatchedDevice, tuple[int, ...]]) -> None:
        """Add a record. `head`: the columns of RecordColumn. A device that is new gets columns in all records.

        A device with another source than before is left out: its figures mean something else.
        """
        names = {device.name for device in self.header.devices}
        new = [device for device in counters if device.name not in names]
        if new := new[: MAX_DEVICES - len(names)]:  # no file may have more
            self._add_devices(new)
        if self.count >= self._limit:
            self._thin(head[RecordColumn.TIME])
        if self.count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        unknown = (UNKNOWN,) * (integers_of_record(1) - integers_of_record(0))
        columns = [counters.get(device, unknown) for device in self.header.devices]
        self._rows[self.count] = (*head, *(value for device in columns for value in device))
        self.count += 1

    def records(self, begin: int = 0) -> bytes:
        """Return the records from a number on, as in a file."""
        return self._rows[begin : self.count].astype(INTEGER).tobytes()

    def content(self) -> bytes:
        """Return the whole file."""
        return self.header.line() + self.records()

    def _add_devices(self, new: list[WatchedDevice]) -> None:
        header = self.header
        self.header = WatchHeader(header.start_ns, header.interval_ns, (*header.devices, *new))
        width = integers_of_record(len(self.header.devices))
        wider = np.full((len(self._rows), width), UNKNOWN, np.int64)
        wider[:, : self._rows.shape[1]] = self._rows
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
