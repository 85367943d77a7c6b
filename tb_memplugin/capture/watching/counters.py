"""The memory counters of this process's devices, and the memory in use during each phase of a step.

Counters are those of the frameworks whose devices the job has started. Other frameworks are not called: the first call
starts their devices, which the job may have to configure before.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tb_memplugin.capture.guard import quietly, text_of, warn
from tb_memplugin.readers.common.limits import MAX_BYTES
from tb_memplugin.readers.watch_layout import (
    MAX_LABEL,
    PHASE,
    UNKNOWN,
    CounterSource,
    DeviceColumn,
    MemoryPart,
    WatchedDevice,
)


def started_jax() -> Any | None:
    """Return JAX if the job has started its devices; else None."""
    jax, bridge = sys.modules.get("jax"), sys.modules.get("jax._src.xla_bridge")
    if jax is None or bridge is None:
        return None
    started = getattr(bridge, "backends_are_initialized", None)  # since 2023; there is no public function
    return jax if (started() if started is not None else getattr(bridge, "_backends", None)) else None


def started_torch() -> Any | None:
    """Return PyTorch if the job uses its GPUs; else None."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return torch if cuda is not None and cuda.is_initialized() else None


Counters = tuple[int, ...]  # in the order of DeviceColumn
NO_COUNTERS: Counters = (UNKNOWN,) * len(DeviceColumn)
NO_PARTS: Mapping[str, int] = MappingProxyType({})
JAX_KEYS = "bytes_in_use", "peak_bytes_in_use", "bytes_limit", "largest_free_block_bytes", "bytes_reserved"
TORCH_KEYS = "allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current"
# Examined without a pause: 0.3 ms, so that a step that waits for Python's lock does not wait longer.
ARRAYS_AT_ONCE = 200
FAILED = "memory counters could not be read"


class Reading(NamedTuple):
    """The counters of a device, or of the host, at one moment."""

    device: WatchedDevice
    counters: Counters
    parts: Mapping[str, int] = NO_PARTS  # named columns, in bytes
    ordinal: int = UNKNOWN  # of a GPU, as CUDA numbers those that this process sees
    arrays: int = UNKNOWN  # live arrays of the process, where they are counted


class DeviceNames:
    """Names of devices, each of one framework: JAX and PyTorch have the same name for a GPU that both use."""

    def __init__(self) -> None:
        self._frameworks: dict[str, str] = {}  # by name: the framework that used it first

    def distinct(self, readings: Iterable[Reading]) -> list[Reading]:
        """Return the readings, where the name of a device that another framework uses has the framework's name, too."""
        found = []
        for reading in readings:
            name, source = reading.device.name, reading.device.source
            framework = "PyTorch" if source is CounterSource.TORCH else "JAX"
            if self._frameworks.setdefault(name, framework) != framework:
                reading = reading._replace(device=WatchedDevice(f"{name} ({framework})", source))
            found.append(reading)
        return found


def read_devices() -> list[Reading]:
    """Return the counters of all devices of this process that are in use. Never raises."""
    found: list[Reading] = []
    for read in (_read_jax, _read_torch):
        with quietly(FAILED):
            found += read()
    return found


def _read_jax() -> list[Reading]:
    if (jax := started_jax()) is None:
        return []
    found, without = [], []
    for device in jax.local_devices():
        try:
            stats = device.memory_stats() or {}
            in_use, peak, limit, largest_free, reserved = (_size(stats.get(key)) for key in JAX_KEYS)
            # JAX's allocator of GPUs always returns 0 for the largest free block.
            counters: Counters = (in_use, peak, limit, largest_free or UNKNOWN, reserved)
        except Exception as error:  # each backend raises another type
            if "UNIMPLEMENTED" not in text_of(error):
                warn(FAILED, error)
                continue  # it may succeed the next time
            stats, counters = {}, NO_COUNTERS
        if counters[DeviceColumn.IN_USE] >= 0:
            parts = _pool(_size(stats.get("pool_bytes")))
            ordinal = getattr(device, "local_hardware_id", None) if device.platform == "gpu" else None
            watched = WatchedDevice(str(device), CounterSource.MEMORY_STATS)
            found.append(Reading(watched, counters, parts, UNKNOWN if ordinal is None else ordinal))
        else:
            without.append(device)
    return [*found, *_live_arrays(jax, without)] if without else found


def _pool(size: int) -> Mapping[str, int]:
    return {MemoryPart.POOL: size} if size >= 0 else NO_PARTS


def _size(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value <= MAX_BYTES else UNKNOWN


def _live_arrays(jax: Any, devices: list[Any]) -> Iterable[Reading]:
    """Return the bytes of live arrays on each device. Arrays stay alive meanwhile, for about 2 us of each."""
    total = dict.fromkeys(devices, 0)
    single = {devices[0]} if jax.device_count() == 1 else None
    arrays = jax.live_arrays(devices[0].platform)
    count = len(arrays)
    while arrays:
        for array in arrays[-ARRAYS_AT_ONCE:]:
            try:
                holders = single or array.sharding.device_set
                size = array.on_device_size_in_bytes() // len(holders)  # the sum of all shards, which are equally large
                for device in holders:
                    if device in total:  # others belong to other processes
                        total[device] += size
            except Exception:  # deleted meanwhile
                continue
        del arrays[-ARRAYS_AT_ONCE:]
        time.sleep(0)  # lets other threads run
    return [
        Reading(WatchedDevice(str(device), CounterSource.LIVE_ARRAYS), (size, *NO_COUNTERS[1:]), arrays=count)
        for device, size in total.items()
    ]


def _read_torch() -> list[Reading]:
    if (torch := started_torch()) is None:
        return []
    found = []
    for number in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(number)
        # This process uses no memory of the GPUs of other ranks.
        if stats.get("reserved_bytes.all.peak"):
            limit = _size(torch.cuda.get_device_properties(number).total_memory)
            in_use, peak, reserved = (_size(stats.get(key)) for key in TORCH_KEYS)
            device = WatchedDevice(f"cuda:{number}", CounterSource.TORCH)
            found.append(Reading(device, (in_use, peak, limit, UNKNOWN, reserved), _pool(reserved), number))
    return found


MAX_PHASES = 16  # of a step, such as rollout and training


class Phase(NamedTuple):
    """A phase that runs. `token` differs between two runs of it."""

    name: str
    token: object


class PhaseLevels:
    """The memory in use of each device during a phase, as a named column of its samples."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._last: Phase | None = None
        self._peaks: dict[str, int] = {}  # by device, at the last sample

    def add_to(self, readings: Iterable[Reading], phase: Phase | None) -> list[Reading]:
        """Return the readings with the column of the phase; of MAX_PHASES phases at most.

        Where the whole time since the last sample is of this phase, a new peak of the device's counter is the phase's.
        """
        found, is_same = list(readings), phase is not None and phase == self._last
        name = f"{PHASE}{phase.name}"[:MAX_LABEL] if phase is not None and isinstance(phase.name, str) else ""
        if name and (name in self._names or len(self._names) < MAX_PHASES):
            self._names.add(name)
            found = [one._replace(parts={**one.parts, name: self._level(one, is_same)}) for one in found]
        self._last = phase
        self._peaks = {one.device.name: one.counters[DeviceColumn.PEAK] for one in found}
        return found

    def _level(self, reading: Reading, is_same: bool) -> int:
        peak = reading.counters[DeviceColumn.PEAK]
        rose = is_same and peak > self._peaks.get(reading.device.name, peak)
        return peak if rose else reading.counters[DeviceColumn.IN_USE]
