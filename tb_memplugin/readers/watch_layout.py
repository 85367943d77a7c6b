"""The layout of watch files, for `capture.watch`, which writes them, and for their reader.

The first line is JSON: when the file begins, and which devices its records have. It is followed by records of equal
length, which are 64-bit integers, lowest byte first. A record has the columns of RecordColumn, then those of
DeviceColumn for each device, and then the `columns` that the first line names. A writer appends whole records, so the
length of the file shows whether its process was killed while it wrote the last one.
"""

import json
from dataclasses import dataclass
from enum import IntEnum, StrEnum, auto
from typing import Any, NamedTuple

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.readers.common.limits import MAX_DEVICES, MAX_TIME_US, too_many

VERSION = 2
READABLE = (1, VERSION)  # version 1 has no named columns
VERSION_KEY = "tb_memplugin_watch"
INTEGER = "<i8"
UNKNOWN = -1


class RecordColumn(IntEnum):
    """Columns of a record. Times are nanoseconds since 1970."""

    TIME = 0
    EVENT = auto()  # a RecordEvent
    STEP = auto()  # the number of the training step that runs; UNKNOWN without steps
    STEP_TIME = auto()  # the time at which that step began


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
    PROC = "proc"  # /proc of Linux, for the memory of the host


class NamedColumn(NamedTuple):
    """A column of bytes that only some devices have: a MemoryPart, a process, or a phase."""

    device: str
    name: str


class MemoryPart(StrEnum):
    """Names of columns for parts of a memory."""

    POOL = "pool"  # of a device: requested by the framework's allocator
    OWN = "own"  # of a device: used by this process
    USED = "used"  # of a device by all processes; of the cgroup without its reclaimable cache, or else of the host
    TOTAL = "total"  # the size of the device, or of the host's memory
    RSS = "rss"  # resident memory of this process, in all
    PRIVATE = "private"  # memory of this process alone
    SHARED = "shared"  # mapped files and shared memory of this process, without files of /dev/shm
    CHILDREN = "children"  # private memory of child processes
    SHM = "shm"  # files of /dev/shm


PROCESS, PHASE = "process ", "phase "  # prefixes of names: used by another process; in use during a phase


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


MAX_HEADER_BYTES = 1 << 18
MAX_NAME = 300  # characters
MAX_COLUMNS = 256  # named ones, of a file
MAX_LABEL = 80  # characters of the name of a process or a phase, with its prefix
MAX_INTERVAL_NS = 10**18
REMEDY = "is it damaged? Copy it again, or delete it"


@dataclass(frozen=True, slots=True)
class WatchedDevice:
    """A device, named as in the device profiles of its process."""

    name: str
    source: CounterSource


@dataclass(frozen=True, slots=True)
class WatchHeader:
    """`start_ns`: since 1970. `interval_ns`: the intended time between samples."""

    start_ns: int
    interval_ns: int
    devices: tuple[WatchedDevice, ...]
    columns: tuple[NamedColumn, ...] = ()

    @property
    def width(self) -> int:
        """Return the number of integers in a record."""
        return first_column(len(self.devices)) + len(self.columns)

    def line(self) -> bytes:
        """Return the line that begins a file."""
        devices = [{"name": device.name, "source": device.source} for device in self.devices]
        times = {"start_ns": self.start_ns, "interval_ns": self.interval_ns}
        content = {VERSION_KEY: VERSION, **times, "devices": devices, "columns": self.columns}
        return json.dumps(content).encode() + b"\n"


def read_header(data: bytes | memoryview, path: str) -> tuple[WatchHeader, int]:
    """Return the header of a file, and where its records begin. InputError where it has none."""
    line, newline, _ = bytes(data[:MAX_HEADER_BYTES]).partition(b"\n")
    try:
        content = json.loads(line) if newline else None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or VERSION_KEY not in content:
        raise InputError("Not a file of capture.watch", path, REMEDY)
    if content[VERSION_KEY] not in READABLE:
        raise InputError("written by another version of tb-memplugin", path, "install the version that wrote it")
    start = _integer(content, "start_ns", MAX_TIME_US * 1000, path)
    interval = _integer(content, "interval_ns", MAX_INTERVAL_NS, path)
    devices = _devices(content.get("devices"), path)
    return WatchHeader(start, interval, devices, _columns(content.get("columns", []), path)), len(line) + 1


def _integer(content: dict[str, Any], name: str, limit: int, path: str) -> int:
    value = content.get(name)
    if type(value) is not int or not 0 <= value <= limit:
        raise InputError(f"damaged: {name} is not a possible time", path, REMEDY)
    return value


def _devices(listed: object, path: str) -> tuple[WatchedDevice, ...]:
    if not isinstance(listed, list):
        raise InputError("damaged: it has no list of devices", path, REMEDY)
    if len(listed) > MAX_DEVICES:
        raise too_many("devices", len(listed), MAX_DEVICES, path)
    devices = []
    for device in listed:
        name, source = map(device.get, ("name", "source")) if isinstance(device, dict) else (None, None)
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or source not in tuple(CounterSource):
            raise InputError("damaged: a device has no name or an unknown source", path, REMEDY)
        devices.append(WatchedDevice(name, CounterSource(source)))
    if len({device.name for device in devices}) < len(devices):
        raise InputError("damaged: several devices have one name", path, REMEDY)
    return tuple(devices)


def _columns(listed: object, path: str) -> tuple[NamedColumn, ...]:
    columns = tuple(map(_column, listed)) if isinstance(listed, list) else (None,)
    if len(columns) > MAX_COLUMNS:
        raise too_many("columns", len(columns), MAX_COLUMNS, path)
    found = tuple(column for column in columns if column is not None)
    if len(found) < len(columns):
        raise InputError("damaged: its columns are no pairs of names", path, REMEDY)
    return found


def _column(pair: object) -> NamedColumn | None:
    is_pair = isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
    return NamedColumn(*pair) if isinstance(pair, list) and is_pair and max(map(len, pair)) <= MAX_NAME else None
