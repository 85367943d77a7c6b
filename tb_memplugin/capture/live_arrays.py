"""Memory over time on any backend: allocations and frees of JAX's live arrays, written into the running profile.

    with jax.profiler.trace("/tmp/xprof"), track() as tracker:
        for number, batch in enumerate(batches):
            with tracker.step(number):
                state = train_step(state, batch)

XProf's Memory Profile and tb_memplugin show them like an accelerator's allocator, as "cpu:0 live arrays".
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from tb_memplugin.capture.allocator_events import (
    ALLOCATION,
    DATA_TYPES,
    DEALLOCATION,
    AllocatorEventWriter,
    BufferStats,
    address,
    bytes_limit,
    creating_line,
    device_count,
    is_deleted,
    memory_stats,
    sharding_text,
)
from tb_memplugin.capture.frameworks import jax
from tb_memplugin.capture.guard import annotated, quietly, warn

FAILED = "live arrays are not recorded until the next profile, and training continues"


@contextmanager
def track(*, interval: float | None = 0.1) -> Iterator[Tracker]:
    """Record the live arrays of JAX's default backend at each step mark and every `interval` seconds.

    With `interval=None`, arrays are examined at step marks only. An array that is new since the last examination is an
    allocation and one that is gone is a free, both at the time of the examination. Arrays that are created and freed
    between two examinations are missed, and so are the temporaries of compiled programs. Deleted and donated arrays
    are free, except where an array with the same line, shape and address replaces one: that memory was overwritten in
    place, and causes no event. Arrays that share a buffer count once; sharded arrays count on each device of this
    process.

    An allocation is named after the line that created the array: the innermost frame outside JAX of the traceback that
    JAX keeps with each array. For results of a jitted function, that is the line of the call.

    Sizes are bytes on the device. Addresses are those of the device, or generated where the backend has none. Where
    the device counts its memory, its counters are written too, as "gpu:0 memory_stats".

    Nothing is examined while no profile is running; when one starts, all live arrays are written first.

    Cost: 25 us for each new array, 6 us for each freed one, and 0.6 us per examination for each other one; a step is
    examined twice. Measured by `python -m benchmarks.capture_cost` on 2 cores. Tracing Python functions multiplies the
    cost; jax.profiler.ProfileOptions turns it off with python_tracer_level = 0.

    Training is never interrupted. Where JAX or the profiler fails, the logger `tb_memplugin.capture` has one line for
    each kind of error, and the arrays, the counters or the rest of the profile concerned are left out. Exceptions of
    the block pass as they are. ValueError for a negative interval.
    """
    if interval is not None and not interval >= 0:
        raise ValueError(f"interval is {interval}: give seconds, or None for step marks only")
    tracker, stop = Tracker(), threading.Event()

    def watch(seconds: float) -> None:
        while not stop.wait(min(seconds, threading.TIMEOUT_MAX)):
            tracker.mark()

    watcher = threading.Thread(target=watch, args=(interval,), name="live arrays", daemon=True) if interval else None
    tracker.mark()
    if watcher:
        with quietly("live arrays are examined at step marks only, since a thread could not start"):
            watcher.start()
    try:
        yield tracker
    finally:
        stop.set()
        if watcher and watcher.ident is not None:
            watcher.join()
        tracker.mark()


class Tracker:
    """The state of JAX's live arrays as last examined. Keeps ids and weak references only, so it keeps no array."""

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._failed = False  # since this profile started
        self._arrays: dict[int, _KnownArray] = {}  # by id
        self._buffers: dict[tuple[str, int], _Buffer] = {}  # by allocator and address
        self._allocators: dict[str, AllocatorEventWriter] = {}
        self._counters: dict[str, tuple[int, ...]] = {}

    @contextmanager
    def step(self, number: int, name: str = "train") -> Iterator[None]:
        """Mark a step as jax.profiler.StepTraceAnnotation does; its allocations and frees are written inside it."""
        self.mark()
        with annotated(
            "steps are not marked in the profile", lambda: jax.profiler.StepTraceAnnotation(name, step_num=number)
        ):
            yield
            self.mark()

    def mark(self) -> None:
        """Examine the live arrays now, and write the changes since the last time. Never raises."""
        if self._process != os.getpid():  # a fork, where another thread's lock would never be released
            self._process, self._lock = os.getpid(), threading.Lock()
        with quietly(FAILED), self._lock:
            if not jax.profiler.TraceAnnotation.is_enabled():
                for state in (self._arrays, self._buffers, self._allocators, self._counters):
                    state.clear()
                self._failed = False
            elif not self._failed:
                self._failed = True  # state that was changed in part would give wrong events
                self._examine()
                self._failed = False

    def _examine(self) -> None:
        """Write all changes. This is a function, so that its array references are gone when the lock is released."""
        arrays: list[jax.Array] | None = None
        with quietly("live arrays could not be listed, and training continues"):
            arrays = jax.live_arrays()
        if arrays is None:
            return  # nothing is changed yet, so that the next mark may succeed
        live = {id(array): array for array in arrays}
        # Python reuses ids: the weak reference shows whether it is still the same array.
        for key in [k for k, known in self._arrays.items() if k not in live or known.array() is not live[k]]:
            self._remove(self._arrays.pop(key))
        new = [array for key, array in live.items() if key not in self._arrays]
        # Sharded arrays first: their shards are live arrays too, without a reference to the sharded one.
        for array in sorted(new, key=lambda array: device_count(array) == 1):
            self._add(array)
        for allocator in self._allocators.values():
            allocator.write_changes()
        with quietly("memory counters could not be written"):
            for device in jax.local_devices():
                self._write_counters(device)

    def _add(self, array: jax.Array) -> None:
        try:
            if device_count(array) == 1:
                self._add_buffer(array, "")
            else:
                # The shards live as long as the sharded array, which needs no buffer itself.
                self._arrays[id(array)] = _KnownArray(weakref.ref(array), None)
                for shard in array.addressable_shards:
                    self._add_buffer(shard.data, sharding_text(array))
        except Exception as error:
            if not is_deleted(array):  # as another thread may do in the meantime
                warn("some live arrays could not be examined, and are left out", error)
                self._arrays.setdefault(id(array), _KnownArray(weakref.ref(array), None))  # not to be tried again

    def _add_buffer(self, array: jax.Array, sharding: str) -> None:
        if id(array) in self._arrays or not array.nbytes:
            return
        device: jax.Device = next(iter(array.sharding.device_set))
        kind = array.sharding.memory_kind
        memory = "" if kind in (None, device.default_memory().kind) else f"{kind} "
        name = f"{device.platform}:{device.id} {memory}live arrays"
        allocator = self._allocators.setdefault(name, AllocatorEventWriter(name, bytes_limit(device)))
        size = int(array.on_device_size_in_bytes())
        key = name, address(array) or allocator.make_address(size)
        buffer = self._buffers.get(key)
        if buffer is None:
            shape = str(array.shape)
            data_type = DATA_TYPES.get(array.dtype.name, 0)
            requested = min(array.nbytes, size)
            stats = BufferStats(creating_line(array), shape, data_type, sharding, requested, size, key[1])
            buffer = self._buffers[key] = _Buffer(allocator, stats)
            allocator.allocated.append(stats)
        buffer.arrays += 1
        self._arrays[id(array)] = _KnownArray(weakref.ref(array), key)

    def _remove(self, known: _KnownArray) -> None:
        if known.buffer is None:
            return
        buffer = self._buffers[known.buffer]
        buffer.arrays -= 1
        if not buffer.arrays:
            del self._buffers[known.buffer]
            buffer.allocator.freed.append(buffer.stats)

    def _write_counters(self, device: jax.Device) -> None:
        """Write the device's own counters where they changed, as an event of 0 bytes, since their owner is unknown."""
        counters = memory_stats(device)
        if not counters:
            return
        name = f"{device.platform}:{device.id} memory_stats"
        in_use, reserved = counters.get("bytes_in_use", 0), counters.get("bytes_reserved", 0)
        current = in_use, reserved, counters.get("peak_bytes_in_use", 0)
        before = self._counters.get(name)
        if current == before:
            return
        self._counters[name] = current
        allocator = self._allocators.setdefault(name, AllocatorEventWriter(name, counters.get("bytes_limit")))
        allocator.in_use, allocator.reserved, allocator.peak = current
        largest = counters.get("largest_free_block_bytes")
        allocator.fragmentation = 1 - min(1, largest / allocator.available) if largest and allocator.available else None
        event = DEALLOCATION if before and in_use < before[0] else ALLOCATION
        allocator.write(event, BufferStats("", "", 0, "", 0, 0, allocator.make_address(1)))


class _KnownArray(NamedTuple):
    array: weakref.ref[jax.Array]
    buffer: tuple[str, int] | None  # the key of its buffer; None for a sharded array, whose shards have buffers


@dataclass
class _Buffer:
    allocator: AllocatorEventWriter
    stats: BufferStats
    arrays: int = 0  # that share it
