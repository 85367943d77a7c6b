"""Files of capture.watch: one recording for each device, with the memory in use at each sample and no allocations."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import HOST_MEMORY, Axis, HostPart, RecordingKind, SpanKind
from tb_memplugin.model.recording import CaptureInfo, Recording, Sampling
from tb_memplugin.model.tables import FREE, CachingAllocatorState, MemoryLedger, NamedSpans, PhasePeaks, ReportedMemory
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import MAX_BYTES, MAX_TIME_US, impossible_bytes
from tb_memplugin.readers.common.part import FilePart, Origin
from tb_memplugin.readers.watch_layout import (
    INTEGER,
    PHASE,
    PROCESS,
    UNKNOWN,
    CounterSource,
    DeviceColumn,
    MemoryPart,
    RecordColumn,
    RecordEvent,
    WatchedDevice,
    WatchHeader,
    first_column,
    fragmentation,
    free_bytes,
    read_header,
)

OUT_OF_MEMORY = "out of memory"


def read_spans(records: I64, clock: I64, start_ns: int) -> NamedSpans:
    """Return a span for each step and for each out-of-memory error of the records.

    Steps that began between the same two samples share a span, `steps 3 to 5`. `clock`: nanoseconds since `start_ns`,
    for each record.
    """
    number, began = records[:, RecordColumn.STEP], records[:, RecordColumn.STEP_TIME] - start_ns
    at = np.flatnonzero((number >= 0) & (began >= 0) & (began <= clock))
    latest = np.maximum.accumulate(began[at])
    at = at[np.diff(latest, prepend=-1) > 0]  # the first record of each step
    step, start = number[at], began[at]
    end = np.r_[start[1:], clock[-1:]] if len(at) else start
    failed = np.flatnonzero(records[:, RecordColumn.EVENT] == RecordEvent.OUT_OF_MEMORY)
    following = np.r_[step[1:], step[-1:] + 1]
    count = np.maximum(following - step, 1)
    # Steps between two samples are in the span of the first of them.
    names = [
        f"step {first}" if many == 1 else f"steps {first} to {first + many - 1}"
        for first, many in zip(step.tolist(), count.tolist(), strict=True)
    ]
    names += [OUT_OF_MEMORY] * len(failed)
    kind = np.repeat([SpanKind.STEP, SpanKind.OUT_OF_MEMORY], [len(at), len(failed)]).astype(np.uint8)
    starts, ends = np.r_[start, clock[failed]], np.r_[end, clock[failed]]
    order = np.argsort(starts, kind="stable")
    counts = np.r_[count, np.zeros_like(failed)]
    return NamedSpans(Text.of(names).take(order), kind[order], starts[order], ends[order], counts[order])


TITLE = "watch"
# Memory that a sample of a device, and the name of a step, take while recordings are made.
SAMPLE_BYTES, SPAN_BYTES = 256, 160
MORE_THAN_LATE = 1.2  # a choice: up to so many intended intervals, the thread only woke up late
NEWEST = 9  # the usual distance of so many last samples is the interval, which grows if sampling is expensive


def open_watch(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the single part of a watch file; reading it raises InputError where it is none."""
    return [FilePart(TITLE, RecordingKind.WATCH, path, len(data), partial(_read, data, Origin(run, host, path)))]


class _Samples(NamedTuple):
    """A device's samples: nanoseconds since the file's start, and its columns in bytes."""

    clock: I64
    counters: I64  # the columns of DeviceColumn, and then those of `names`
    names: tuple[str, ...]

    def column(self, which: DeviceColumn) -> I64:
        return self.counters[:, which]

    @property
    def named(self) -> dict[str, I64]:
        return dict(zip(self.names, self.counters.T[len(DeviceColumn) :], strict=True))


def _read(data: bytes | memoryview, origin: Origin) -> list[Recording]:
    budget = ReadBudget(data, origin.source)
    header, begin = read_header(data, origin.source)
    width = header.width
    # A writer that was killed may leave a part of a record, which is dropped.
    count = (len(data) - begin) // (width * 8)
    budget.charge(count * (2 * width * 8 + len(header.devices) * SAMPLE_BYTES + SPAN_BYTES))
    whole = memoryview(data)[begin : begin + count * width * 8]
    records = np.frombuffer(whole, INTEGER).astype(np.int64).reshape(count, width)
    time = records[:, RecordColumn.TIME]
    records = records[(time >= header.start_ns) & (time <= MAX_TIME_US * 1000)]  # zeros after a loss of power
    clock = np.maximum.accumulate(records[:, RecordColumn.TIME]) - header.start_ns
    spans = read_spans(records, clock, header.start_ns)
    between, intended = np.diff(clock[-NEWEST:]), header.interval_ns
    usual = int(np.median(between)) if len(between) else 0
    finished = len(records) > 0 and bool(records[-1, RecordColumn.EVENT] == RecordEvent.FINISHED)
    sampling = Sampling(usual if usual > MORE_THAN_LATE * intended else intended, finished)
    found = []
    for number, device in enumerate(header.devices):
        named = [at for at, column in enumerate(header.columns) if column.device == device.name]
        first = first_column(len(header.devices))
        columns = records[:, [*range(first_column(number), first_column(number + 1)), *(first + at for at in named)]]
        possible = (columns >= UNKNOWN) & (columns <= MAX_BYTES)
        counters = np.where(possible, columns, UNKNOWN)
        known = counters[:, DeviceColumn.IN_USE] >= 0
        if not known.any():
            continue
        names = tuple(header.columns[at].name for at in named)
        samples = _with_peaks(_Samples(clock[known], counters[known], names))
        problems = impossible_bytes(int((~possible).sum()), "counter", ("is", "are"), "impossible and ignored")
        caveats = (*_caveats(device, samples, sampling), *problems)
        found.append(_recording(header, device, samples, spans, sampling, caveats, origin))
    return sorted(found, key=lambda recording: recording.memory == HOST_MEMORY)


def _with_peaks(samples: _Samples) -> _Samples:
    """Add a position before each sample at which the counter of the peak has risen above both neighbors.

    The memory reached that peak between the two samples, so the largest usage over all positions is the true peak.
    """
    in_use, peak = samples.column(DeviceColumn.IN_USE), samples.column(DeviceColumn.PEAK)
    higher = (peak[1:] > peak[:-1]) & (peak[:-1] >= 0) & (peak[1:] > np.maximum(in_use[1:], in_use[:-1]))
    at = np.flatnonzero(higher) + 1
    clock = np.insert(samples.clock, at, np.maximum(samples.clock[at] - 1, samples.clock[at - 1]))
    counters = np.insert(samples.counters, at, samples.counters[at], axis=0)
    added = at + np.arange(len(at))
    counters[added, DeviceColumn.IN_USE] = peak[at]
    counters[added, DeviceColumn.LARGEST_FREE] = UNKNOWN
    return samples._replace(clock=clock, counters=counters)


def _recording(
    header: WatchHeader,
    device: WatchedDevice,
    samples: _Samples,
    spans: NamedSpans,
    sampling: Sampling,
    caveats: tuple[Caveat, ...],
    origin: Origin,
) -> Recording:
    none = np.empty(0, np.int64)
    limit, reserved = samples.column(DeviceColumn.LIMIT), samples.column(DeviceColumn.RESERVED)
    in_use, named = samples.column(DeviceColumn.IN_USE), samples.named
    is_torch, is_host = device.source is CounterSource.TORCH, device.source is CounterSource.PROC
    return Recording(
        **origin._asdict(),
        kind=RecordingKind.WATCH,
        title=TITLE,
        memory=device.name,
        axis=Axis.TIME,
        length=len(samples.clock),
        allocations=table_builder.allocations(none),
        regions=table_builder.no_regions(),
        stacks=table_builder.no_stacks(),
        clock=samples.clock,
        spans=spans,
        reported=_reported(samples, device.source),
        caching_allocator=CachingAllocatorState(reserved) if is_torch and (reserved >= 0).all() else None,
        capture_info=CaptureInfo(time_ns=header.start_ns),
        sampling=sampling,
        ledger=_host_ledger(named, limit) if is_host else _device_ledger(named, in_use, limit),
        phases=_phase_peaks(named),
        reported_peak=int(samples.column(DeviceColumn.PEAK).max(initial=0)) or None,
        capacity=int(limit.max(initial=0)) or None,
        caveats=caveats,
    )


def _reported(samples: _Samples, source: CounterSource) -> ReportedMemory:
    """Return the allocator's figures. Memory that PyTorch has reserved is free for tensors, so it is not added."""
    in_use, limit = samples.column(DeviceColumn.IN_USE), samples.column(DeviceColumn.LIMIT)
    has_reserved = source is CounterSource.MEMORY_STATS
    reserved = np.maximum(samples.column(DeviceColumn.RESERVED), 0) if has_reserved else np.zeros_like(in_use)
    used = samples.named.get(MemoryPart.USED, in_use) if source is CounterSource.PROC else in_use
    free = free_bytes(used, limit, reserved)
    peak = samples.column(DeviceColumn.PEAK)
    lost = fragmentation(free, samples.column(DeviceColumn.LARGEST_FREE))
    return ReportedMemory(in_use, reserved, free, np.where(peak >= 0, peak, in_use), lost)


def _caveats(device: WatchedDevice, samples: _Samples, sampling: Sampling) -> list[Caveat]:
    seconds = f"{sampling.interval_ns / 1e9:.3g} s"
    has_counter = bool((samples.column(DeviceColumn.PEAK) >= 0).any())
    between = (
        f"Peaks in between are those of the allocator's own counter, and their times are known to {seconds}."
        if has_counter
        else "Shorter peaks are missed."
    )
    found = [Caveat(CaveatCode.SAMPLED, f"Memory is read every {seconds}. {between}")]
    if device.source is CounterSource.LIVE_ARRAYS:
        text = (
            "The backend has no memory counters, so these are the bytes of JAX's live arrays: temporaries of compiled "
            "programs are missing, and arrays that share a buffer count several times."
        )
        found.append(Caveat(CaveatCode.LIVE_ARRAYS, text))
    return found


ColumnsByName = Mapping[str, I64]  # UNKNOWN, which is negative, where a sample has no figure


def _device_ledger(named: ColumnsByName, in_use: I64, limit: I64) -> MemoryLedger | None:
    """Return the ledger of a device; None where only the bytes in use are known."""
    nothing = np.full_like(in_use, -1)
    used, own, pool = (named.get(part, nothing) for part in (MemoryPart.USED, MemoryPart.OWN, MemoryPart.POOL))
    pool = np.maximum(pool, in_use)
    total = np.where((size := named.get(MemoryPart.TOTAL, nothing)) > 0, size, limit)
    outside = np.where(own >= 0, np.maximum(own - pool, 0), 0)
    others = {name.removeprefix(PROCESS): column for name, column in named.items() if name.startswith(PROCESS)}
    listed = np.maximum(pool + outside + sum(np.maximum(column, 0) for column in others.values()), 0)
    rest = "Driver and other processes" if (own >= 0).any() else "Outside of the allocator, driver and other processes"
    parts = {
        "Live": in_use,
        "Cache": pool - in_use,
        "Outside of the allocator": outside,
        **others,
        rest: np.where(used >= 0, used - listed, 0),
    }
    return _ledger(parts, np.where(total > 0, total - np.maximum(listed, used), -1))


def _host_ledger(named: ColumnsByName, limit: I64) -> MemoryLedger | None:
    """Return the ledger of the host; None where its parts are unknown."""
    parts = {part.value: np.maximum(named[part.name.lower()], 0) for part in HostPart if part.name.lower() in named}
    if len(parts) < len(HostPart) or MemoryPart.USED not in named:
        return None
    own, used = sum(parts.values(), np.zeros_like(limit)), named[MemoryPart.USED]
    of_host = MemoryPart.TOTAL in named and bool((named[MemoryPart.TOTAL] == limit).all())
    parts["Rest of the host" if of_host else "Rest of the cgroup"] = used - own
    return _ledger(parts, np.where(limit > 0, limit - np.maximum(own, used), -1))


def _ledger(parts: ColumnsByName, free: I64) -> MemoryLedger | None:
    """Return the parts that are ever more than 0, with the free bytes where they are known."""
    kept = {label: np.maximum(column, 0) for label, column in parts.items() if (column > 0).any()}
    if (free >= 0).any():
        kept[FREE] = np.maximum(free, 0)
    return MemoryLedger(tuple(kept), np.stack(list(kept.values()))) if len(kept) > 1 else None


def _phase_peaks(named: ColumnsByName) -> PhasePeaks | None:
    """Return the peaks of the phases that were sampled; None without any."""
    found = {name.removeprefix(PHASE): column for name, column in named.items() if name.startswith(PHASE)}
    found = {name: column for name, column in found.items() if (column >= 0).any()}
    if not found:
        return None
    levels = np.stack(list(found.values()))
    return PhasePeaks(tuple(found), levels.max(axis=1), levels.argmax(axis=1))
