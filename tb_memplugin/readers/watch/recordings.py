"""Recordings of a watch file: one for each device, with the memory in use at each sample and no allocations."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.capture_info import CaptureInfo, Sampling
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.model.kinds import Axis, RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.source_tables import CachingAllocatorState, NamedSpans, ReportedMemory
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import MAX_BYTES, MAX_TIME_US, impossible_bytes
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.watch.header import WatchedDevice, WatchHeader, read_header
from tb_memplugin.readers.watch.layout import (
    INTEGER,
    UNKNOWN,
    CounterSource,
    DeviceColumn,
    RecordColumn,
    RecordEvent,
    first_column,
    fragmentation,
    free_bytes,
    integers_of_record,
)
from tb_memplugin.readers.watch.spans import read_spans

TITLE = "watch"
# Of a sample of a device, and of the name of a step, while recordings are made.
SAMPLE_BYTES, SPAN_BYTES = 256, 160
MORE_THAN_LATE = 1.2  # times the intended interval; threads wake up a little late
NEWEST = 9  # samples, whose usual distance is the interval: it grows where sampling is expensive


def open_watch(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the single part of a watch file; reading it raises InputError where it is none."""
    return [FilePart(TITLE, RecordingKind.WATCH, path, len(data), partial(_read, data, path, run, host))]


class _Samples(NamedTuple):
    """A device's samples: nanoseconds since the file's start, and the columns of DeviceColumn in bytes."""

    clock: I64
    counters: I64

    def column(self, which: DeviceColumn) -> I64:
        return self.counters[:, which]


def _read(data: bytes | memoryview, path: str, run: str, host: str) -> list[Recording]:
    budget = ReadBudget(data, path)
    header, begin = read_header(data, path)
    width = integers_of_record(len(header.devices))
    # What is left of a record whose writer was killed is not a whole one.
    count = (len(data) - begin) // (width * 8)
    budget.charge(count * (width * 8 + len(header.devices) * SAMPLE_BYTES + SPAN_BYTES))
    whole = memoryview(data)[begin : begin + count * width * 8]
    records = np.frombuffer(whole, INTEGER).astype(np.int64).reshape(count, width)
    time = records[:, RecordColumn.TIME]
    records = records[(time >= header.start_ns) & (time <= MAX_TIME_US * 1000)]  # zeros, where a machine lost power
    clock = np.maximum.accumulate(records[:, RecordColumn.TIME]) - header.start_ns
    spans = read_spans(records, clock, header.start_ns)
    sampling = _sampling(header, records, clock)
    found = []
    for number, device in enumerate(header.devices):
        columns = records[:, first_column(number) : first_column(number + 1)]
        possible = (columns >= UNKNOWN) & (columns <= MAX_BYTES)
        counters = np.where(possible, columns, UNKNOWN)
        known = counters[:, DeviceColumn.IN_USE] >= 0
        if not known.any():
            continue
        samples = _with_peaks(_Samples(clock[known], counters[known]))
        problems = impossible_bytes(int((~possible).sum()), "counter", ("is", "are"), "impossible and ignored")
        made = _recording(header, device, samples, spans, sampling, (run, host, path))
        found.append(made(caveats=(*_caveats(device, samples, sampling), *problems)))
    return found


def _sampling(header: WatchHeader, records: I64, clock: I64) -> Sampling:
    between = np.diff(clock[-NEWEST:])
    usual = int(np.median(between)) if len(between) else 0
    finished = len(records) > 0 and bool(records[-1, RecordColumn.EVENT] == RecordEvent.FINISHED)
    intended = header.interval_ns
    return Sampling(usual if usual > MORE_THAN_LATE * intended else intended, finished)


def _with_peaks(samples: _Samples) -> _Samples:
    """Add a position before each sample by which the counter of the peak rose above both neighbors.

    The memory did reach that peak between the two samples, so the largest usage over the positions is the true peak.
    """
    in_use, peak = samples.column(DeviceColumn.IN_USE), samples.column(DeviceColumn.PEAK)
    higher = (peak[1:] > peak[:-1]) & (peak[:-1] >= 0) & (peak[1:] > np.maximum(in_use[1:], in_use[:-1]))
    at = np.flatnonzero(higher) + 1
    clock = np.insert(samples.clock, at, np.maximum(samples.clock[at] - 1, samples.clock[at - 1]))
    counters = np.insert(samples.counters, at, samples.counters[at], axis=0)
    added = at + np.arange(len(at))
    counters[added, DeviceColumn.IN_USE] = peak[at]
    counters[added, DeviceColumn.LARGEST_FREE] = UNKNOWN
    return _Samples(clock, counters)


def _recording(
    header: WatchHeader,
    device: WatchedDevice,
    samples: _Samples,
    spans: NamedSpans,
    sampling: Sampling,
    origin: tuple[str, str, str],
) -> partial[Recording]:
    """Return the recording of a device, without its caveats."""
    run, host, path = origin
    none = np.empty(0, np.int64)
    limit, reserved = samples.column(DeviceColumn.LIMIT), samples.column(DeviceColumn.RESERVED)
    is_torch = device.source is CounterSource.TORCH
    return partial(
        Recording,
        kind=RecordingKind.WATCH,
        title=TITLE,
        run=run,
        host=host,
        source=path,
        memory=device.name,
        axis=Axis.TIME,
        length=len(samples.clock),
        allocations=table_builder.allocations(none),
        regions=table_builder.no_regions(),
        stacks=Stacks(np.empty(0, np.int32), Text.of([]), Text.of([]), np.empty(0, np.int32)),
        clock=samples.clock,
        spans=spans,
        reported=_reported(samples, is_torch),
        caching_allocator=CachingAllocatorState(reserved) if is_torch and (reserved >= 0).all() else None,
        capture_info=CaptureInfo(time_ns=header.start_ns),
        sampling=sampling,
        reported_peak=int(samples.column(DeviceColumn.PEAK).max(initial=0)) or None,
        capacity=int(limit.max(initial=0)) or None,
    )


def _reported(samples: _Samples, is_torch: bool) -> ReportedMemory:
    """Return the allocator's figures. Memory that PyTorch has reserved is free for tensors, so it is not added."""
    in_use = samples.column(DeviceColumn.IN_USE)
    reserved = np.zeros_like(in_use) if is_torch else np.maximum(samples.column(DeviceColumn.RESERVED), 0)
    free = free_bytes(in_use, samples.column(DeviceColumn.LIMIT), reserved)
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
