"""Facts about JAX arrays and devices, and allocator events about them, written into the running JAX profile."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from tb_memplugin.capture.frameworks import jax, jaxlib
from tb_memplugin.capture.guard import quietly


@cache
def _jax_folders() -> tuple[str, ...]:
    return tuple(os.path.dirname(str(module.__file__)) + os.sep for module in (jax, jaxlib))


def creating_frame(array: jax.Array) -> tuple[str, int] | None:
    """Return the file and line that created the array; None where JAX kept no traceback."""
    traceback = getattr(array, "traceback", None)
    frames = traceback.frames if traceback else ()
    outside = (frame for frame in frames if not frame.file_name.startswith(_jax_folders()))
    return next(((frame.file_name, frame.line_num) for frame in outside), None)


def creating_line(array: jax.Array) -> str:
    """Return the line that created the array, such as `file.py:9`; empty where it is unknown."""
    found = creating_frame(array)
    # The profiler ends an event's name at a #.
    return f"{os.path.basename(found[0])}:{found[1]}".replace("#", "_") if found else ""


def sharding_text(array: jax.Array) -> str:
    """Describe an array's sharding, such as `PartitionSpec('data',) of (8, 128)`."""
    spec = getattr(array.sharding, "spec", type(array.sharding).__name__)
    return f"{spec} of {array.shape}".replace("#", "_")


def address(array: jax.Array) -> int | None:
    """Return the address of the array's buffer; None where the backend has none."""
    try:
        return int(array.unsafe_buffer_pointer())
    except Exception:  # each backend raises another type
        return None


def is_deleted(array: jax.Array) -> bool:
    try:
        return bool(array.is_deleted())
    except Exception:
        return False


def device_count(array: jax.Array) -> int:
    """Return the number of devices that an array is on; 1 where that is unknown."""
    try:
        return len(array.sharding.device_set)
    except Exception:
        return 1


def memory_stats(device: jax.Device) -> dict[str, int] | None:
    """Return the device's memory counters, in bytes; None where it has none, as on CPU."""
    with quietly("memory counters could not be read"):
        counters = device.memory_stats()
        # Numbers only: the counters become part of a file.
        return {name: value for name, value in (counters or {}).items() if isinstance(value, int)} or None
    return None


def bytes_limit(device: jax.Device) -> int | None:
    """Return the memory that the device's allocator may use, in bytes; None where it is unknown."""
    return (memory_stats(device) or {}).get("bytes_limit")


ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"

# Numbers of TensorFlow's DataType, which allocator events use; types that are missing here are written as 0.
DATA_TYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9, "bool": 10,
    "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip


class BufferStats(NamedTuple):
    """The stats of a buffer in an event, under the names that XProf reads."""

    tf_op: str
    shape: str
    data_type: int
    region_type: str
    requested_bytes: int
    allocation_bytes: int
    addr: int


@dataclass
class AllocatorEventWriter:
    """One allocator's counters, in bytes, and the changes of its buffers that wait to be written."""

    name: str
    limit: int | None
    in_use: int = 0
    reserved: int = 0
    peak: int = 0
    fragmentation: float | None = 0.0  # live arrays are in no pool that could be fragmented
    next_address: int = 1 << 48  # of buffers without an address: above the address range of devices and processes
    freed: list[BufferStats] = field(default_factory=list)
    allocated: list[BufferStats] = field(default_factory=list)

    @property
    def available(self) -> int:
        return max(0, (self.limit or 0) - self.reserved - self.in_use)

    def make_address(self, size: int) -> int:
        """Return an address for a buffer of `size` bytes that has none, different from and disjoint to all others."""
        self.next_address += size
        return self.next_address - size

    def write_changes(self) -> None:
        """Write the waiting allocations and frees, in an order in which no two buffers overlap.

        Frees are not all written first, which would look as if memory had been empty in between. Bytes in use never
        rise above the larger of their values before and after, so that the order creates no peak.
        """
        # Donated state is overwritten in place: its memory was never free, and an allocator would log nothing.
        overwritten = set(self.freed) & set(self.allocated)
        self.freed = sorted(set(self.freed) - overwritten, key=lambda stats: -stats.addr)
        self.allocated = sorted(set(self.allocated) - overwritten, key=lambda stats: stats.addr)
        growth = sum(new.allocation_bytes for new in self.allocated) - sum(old.allocation_bytes for old in self.freed)
        level = self.in_use + max(0, growth)
        for new in self.allocated:
            end, room = new.addr + new.allocation_bytes, level - new.allocation_bytes
            while self.freed and (self.freed[-1].addr < end or self.in_use > room):
                self.write(DEALLOCATION, self.freed.pop())
            self.write(ALLOCATION, new)
        while self.freed:
            self.write(DEALLOCATION, self.freed.pop())
        self.allocated.clear()

    def write(self, event: str, stats: BufferStats) -> None:
        """Write one event, with the counters after it."""
        self.in_use += stats.allocation_bytes if event == ALLOCATION else -stats.allocation_bytes
        self.peak = max(self.peak, self.in_use)
        # Unknown counters are left out: XProf shows 0 for them.
        known = {} if self.fragmentation is None else {"fragmentation": self.fragmentation}
        if self.limit is not None:
            known["bytes_available"] = self.available
        with jax.profiler.TraceAnnotation(
            event,
            allocator_name=self.name,
            bytes_allocated=self.in_use,
            bytes_reserved=self.reserved,
            peak_bytes_in_use=self.peak,
            **known,
            **{name: value for name, value in stats._asdict().items() if value != ""},
        ):
            pass
