"""A dynamic memory profile on any backend: what JAX's live arrays did, written into the profile that is running.

    with jax.profiler.trace("/tmp/xprof"), track() as tracker:
        for number, batch in enumerate(batches):
            with tracker.step(number):
                state = train_step(state, batch)

XProf's Memory Profile and tb_memplugin read it as they read an accelerator's allocator: "cpu:0 live arrays".
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jaxlib

OF_JAX = tuple(os.path.dirname(str(module.__file__)) + os.sep for module in (jax, jaxlib))

ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"

# TensorFlow's DataType, which allocator events are written in; 0 where it has none.
DATA_TYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9, "bool": 10,
    "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip


@contextmanager
def track(*, interval: float | None = 0.1) -> Iterator[Tracker]:
    """Looks at the default backend's live arrays at every step mark and every `interval` seconds (None: at marks only).

    What a look finds new is an allocation and what it misses a free, both at the time of the look: an array that
    comes and goes between two looks is not seen, nor is what a program needs only while it runs. Deleted and donated
    arrays are free; but where the next look finds another of the same line, shape and address, nothing is written:
    that memory was written over. Arrays that share a buffer count once, sharded ones on each device of this process.

    An allocation is named after its creating line: the innermost frame outside JAX of the traceback that JAX keeps
    with each array. For what a jitted function returns, that is the line that called it.

    Sizes are bytes on the device. Addresses are the device's, or made up where the backend tells none. Where the
    device counts its memory, those counters are written too, as "gpu:0 memory_stats".

    Without a profile running nothing is looked at; when one starts, all that lives then is told first.

    Costs 25 us for each new array, 6 us for each that goes, and 0.6 us a look for each that stays; a step takes two
    looks. Measured by python -m benchmarks.capture_cost on 2 cores; tracing Python too makes it several times as much
    (jax.profiler.ProfileOptions: python_tracer_level = 0).
    """
    tracker, stop = Tracker(), threading.Event()

    def watch(seconds: float) -> None:
        while not stop.wait(seconds):
            tracker.mark()

    watcher = threading.Thread(target=watch, args=(interval,), name="live arrays", daemon=True) if interval else None
    tracker.mark()
    if watcher:
        watcher.start()
    try:
        yield tracker
    finally:
        stop.set()
        if watcher:
            watcher.join()
        tracker.mark()


class Tracker:
    """What is known of the live arrays. Holds no array longer than a look takes: ids and weak references only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[int, _Seen] = {}  # by the id of the array
        self._buffers: dict[tuple[str, int], _Buffer] = {}  # by allocator and address
        self._memories: dict[str, _Memory] = {}
        self._counters: dict[str, tuple[int, ...]] = {}

    @contextmanager
    def step(self, number: int, name: str = "train") -> Iterator[None]:
        """A step of the profile, as jax.profiler.StepTraceAnnotation: what it makes and frees is written inside it."""
        self.mark()
        with jax.profiler.StepTraceAnnotation(name, step_num=number):
            yield
            self.mark()

    def mark(self) -> None:
        """Looks now, and writes what has changed since the last look."""
        with self._lock:
            if jax.profiler.TraceAnnotation.is_enabled():
                self._look()
            else:
                self._forget()

    def _look(self) -> None:
        """A function of its own, so that no array is held any more when the lock is given back."""
        arrays: list[jax.Array] = jax.live_arrays()  # type: ignore[no-untyped-call]
        live = {id(array): array for array in arrays}
        # An id is used again: whether it is the same array, the reference tells.
        for key in [k for k, seen in self._seen.items() if k not in live or seen.array() is not live[k]]:
            self._lose(self._seen.pop(key))
        new = [array for key, array in live.items() if key not in self._seen]
        # Sharded ones first: their shards are live arrays too, which know neither sharding nor whole.
        for array in sorted(new, key=lambda array: len(array.sharding.device_set) == 1):
            self._find(array)
        for memory in self._memories.values():
            memory.write()
        for device in jax.local_devices():
            self._count(device)

    def _forget(self) -> None:
        for known in (self._seen, self._buffers, self._memories, self._counters):
            known.clear()

    def _find(self, array: jax.Array) -> None:
        try:
            if len(array.sharding.device_set) == 1:
                self._hold(array, "")
            else:
                # The shards live as long as the whole: it needs no buffers of its own.
                self._seen[id(array)] = _Seen(weakref.ref(array), None)
                for shard in array.addressable_shards:
                    self._hold(shard.data, _sharding(array))
        except RuntimeError:  # deleted by another thread since the look began
            return

    def _hold(self, array: jax.Array, sharding: str) -> None:
        if id(array) in self._seen or not array.nbytes:
            return
        device: jax.Device = next(iter(array.sharding.device_set))
        kind = array.sharding.memory_kind
        place = "" if kind in (None, device.default_memory().kind) else f"{kind} "
        name = f"{device.platform}:{device.id} {place}live arrays"
        memory = self._memories.setdefault(name, _Memory(name, _limit(device)))
        size = int(array.on_device_size_in_bytes())
        key = name, _pointer(array) or memory.make_up(size)
        buffer = self._buffers.get(key)
        if buffer is None:
            shape = str(array.shape)
            data_type = DATA_TYPES.get(array.dtype.name, 0)
            stats = _Stats(creating_line(array), shape, data_type, sharding, min(array.nbytes, size), size, key[1])
            buffer = self._buffers[key] = _Buffer(memory, stats)
            memory.found.append(stats)
        buffer.holders += 1
        self._seen[id(array)] = _Seen(weakref.ref(array), key)

    def _lose(self, seen: _Seen) -> None:
        if seen.buffer is None:
            return
        buffer = self._buffers[seen.buffer]
        buffer.holders -= 1
        if not buffer.holders:
            del self._buffers[seen.buffer]
            buffer.memory.lost.append(buffer.stats)

    def _count(self, device: jax.Device) -> None:
        """The device's own counters, where they have changed. They do not say whose the bytes are: 0 bytes."""
        counters = memory_stats(device)
        if not counters:
            return
        name = f"{device.platform}:{device.id} memory_stats"
        in_use, reserved = counters.get("bytes_in_use", 0), counters.get("bytes_reserved", 0)
        told = in_use, reserved, counters.get("peak_bytes_in_use", 0)
        before = self._counters.get(name)
        if told == before:
            return
        self._counters[name] = told
        memory = self._memories.setdefault(name, _Memory(name, counters.get("bytes_limit")))
        memory.in_use, memory.reserved, memory.peak = told
        largest = counters.get("largest_free_block_bytes")
        memory.fragmentation = 1 - min(1, largest / memory.available) if largest and memory.available else None
        event = DEALLOCATION if before and in_use < before[0] else ALLOCATION
        memory.change(event, _Stats("", "", 0, "", 0, 0, memory.make_up(1)))


class _Seen(NamedTuple):
    array: weakref.ref[jax.Array]
    buffer: tuple[str, int] | None  # None: a sharded array, whose shards are seen themselves


class _Stats(NamedTuple):
    """What an event says of a buffer, by the names under which XProf reads it."""

    tf_op: str
    shape: str
    data_type: int
    region_type: str
    requested_bytes: int
    allocation_bytes: int
    addr: int


@dataclass
class _Buffer:
    memory: _Memory
    stats: _Stats
    holders: int = 0  # arrays that share it


@dataclass
class _Memory:
    """The counters of one allocator, in bytes."""

    name: str
    limit: int | None
    in_use: int = 0
    reserved: int = 0
    peak: int = 0
    fragmentation: float | None = 0.0  # live arrays are no pool that could be
    made_up: int = 1 << 48  # above what devices and processes address
    lost: list[_Stats] = field(default_factory=list)  # by the look that is going on
    found: list[_Stats] = field(default_factory=list)

    @property
    def available(self) -> int:
        return max(0, (self.limit or 0) - self.reserved - self.in_use)

    def make_up(self, size: int) -> int:
        """An address for a buffer whose own is not told: never given twice, and no two buffers overlap."""
        self.made_up += size
        return self.made_up - size

    def write(self) -> None:
        """What came and went since the last look.

        In an order in which no two buffers overlap. Frees do not all go first, as if memory had been empty in between,
        and what is in use never rises above both looks: such a peak would be made up.
        """
        # Donated state is written over in place: its memory was never free, and an allocator would not say so either.
        kept = set(self.lost) & set(self.found)
        self.lost = sorted(set(self.lost) - kept, key=lambda stats: -stats.addr)
        self.found = sorted(set(self.found) - kept, key=lambda stats: stats.addr)
        growth = sum(new.allocation_bytes for new in self.found) - sum(old.allocation_bytes for old in self.lost)
        level = self.in_use + max(0, growth)
        for new in self.found:
            end, room = new.addr + new.allocation_bytes, level - new.allocation_bytes
            while self.lost and (self.lost[-1].addr < end or self.in_use > room):
                self.change(DEALLOCATION, self.lost.pop())
            self.change(ALLOCATION, new)
        while self.lost:
            self.change(DEALLOCATION, self.lost.pop())
        self.found.clear()

    def change(self, event: str, stats: _Stats) -> None:
        self.in_use += stats.allocation_bytes if event == ALLOCATION else -stats.allocation_bytes
        self.peak = max(self.peak, self.in_use)
        # What nothing tells is not made up: XProf shows 0 for it.
        told = {} if self.fragmentation is None else {"fragmentation": self.fragmentation}
        if self.limit is not None:
            told["bytes_available"] = self.available
        with jax.profiler.TraceAnnotation(
            event,
            allocator_name=self.name,
            bytes_allocated=self.in_use,
            bytes_reserved=self.reserved,
            peak_bytes_in_use=self.peak,
            **told,
            **{name: value for name, value in stats._asdict().items() if value != ""},
        ):
            pass


def creating_line(array: jax.Array) -> str:
    """file.py:9, or nothing where JAX kept no traceback."""
    traceback = getattr(array, "traceback", None)
    for frame in traceback.frames if traceback else ():
        if not frame.file_name.startswith(OF_JAX):
            # The profiler reads what follows a # as the end of the event.
            return f"{os.path.basename(frame.file_name)}:{frame.line_num}".replace("#", "_")
    return ""


def memory_stats(device: jax.Device) -> dict[str, int] | None:
    """The device's counters, in bytes; None where it has none, as on CPU."""
    try:
        counters: dict[str, int] | None = device.memory_stats()
    except jax.errors.JaxRuntimeError:  # what some backends say instead of None
        return None
    return counters


def _limit(device: jax.Device) -> int | None:
    return (memory_stats(device) or {}).get("bytes_limit")


def _pointer(array: jax.Array) -> int | None:
    try:
        return int(array.unsafe_buffer_pointer())
    except (RuntimeError, NotImplementedError, ValueError):
        return None


def _sharding(array: jax.Array) -> str:
    spec = getattr(array.sharding, "spec", type(array.sharding).__name__)
    return f"{spec} of {array.shape}".replace("#", "_")
