"""The layout of watch files, for `capture.watch`, which writes them, and for their reader.

A line of JSON is followed by records of equal length, which are 64-bit integers, lowest byte first. A record has the
columns of RecordColumn, and then those of DeviceColumn for each device. So a writer appends whole records, and what a
process that was killed leaves of its last record is recognized by its length.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum, auto
from typing import Any

import numpy as np

VERSION = 1
VERSION_KEY = "tb_memplugin_watch"
INTEGER = "<i8"
UNKNOWN = -1


class RecordColumn(IntEnum):
    """Columns of a record. Times are nanoseconds since 1970."""

    TIME = 0
    EVENT = auto()  # a RecordEvent
    STEP = auto()  # the number of the training step that runs; UNKNOWN without steps
    STEP_TIME = auto()  # at which that step began


class DeviceColumn(IntEnum):
    """Columns of a device, in bytes; UNKNOWN where the device has no such counter."""

    IN_USE = 0
    PEAK = auto()  # of bytes in use, since the process started or the counter was reset
    LIMIT = auto()  # bytes that the allocator may use
    LARGEST_FREE = auto()  # the largest free block
    RESERVED = auto()  # JAX: not available to the heap, as for stacks; PyTorch: requested from the device


class RecordEvent(IntEnum):
    """Reasons for a record."""

    SAMPLE = 0
    FINISHED = 1  # always the last record
    OUT_OF_MEMORY = 2


class CounterSource(StrEnum):
    """The origin of a device's columns."""

    MEMORY_STATS = "memory_stats"  # jax.Device.memory_stats()
    LIVE_ARRAYS = "live_arrays"  # bytes of jax.live_arrays(), where the device has no counters
    TORCH = "torch"  # torch.cuda.memory_stats()


def integers_of_record(devices: int) -> int:
    """Return the number of integers in a record."""
    return len(RecordColumn) + devices * len(DeviceColumn)


def first_column(device: int) -> int:
    """Return the first column of a device, by its number."""
    return len(RecordColumn) + device * len(DeviceColumn)


def free_bytes(in_use: Any, limit: Any, reserved: Any) -> Any:
    """Return the bytes that are free, of one sample or of columns."""
    return np.maximum(limit - in_use - reserved, 0)


def fragmentation(free: Any, largest_free: Any) -> Any:
    """Return the share of free memory outside the largest free block, of one sample or of columns; NaN if unknown."""
    known = (largest_free > 0) & (free > 0)
    return np.where(known, 1 - np.minimum(largest_free / np.maximum(free, 1), 1), np.nan)
