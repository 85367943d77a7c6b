"""The memory profile of an allocator in XProf's JSON format."""

import math

import numpy as np

from tb_memplugin.analysis.isolate import each
from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.xprof import Json

MAX_SNAPSHOTS = 10_000  # about 4 MB of JSON, and as many points as the chart of XProf's page can draw

# TensorFlow's names of XLA's number types.
DTYPES = {
    "f32": "float", "f64": "double", "f16": "half", "bf16": "bfloat16", "s64": "int64", "s32": "int32",
    "s16": "int16", "s8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
    "pred": "bool", "c64": "complex64", "c128": "complex128",
}  # fmt: skip


class AllocatorProfile:
    """The answer about one allocator, from its recording."""

    def __init__(self, recording: Recording) -> None:
        if recording.reported is None or recording.clock is None:
            raise InputError("Not an allocator's recording", recording.title, "open it in the Memory Viewer")
        if not recording.length:
            raise InputError("No events", recording.title, "profile a step that runs on the device")
        self.recording = recording
        self.rows = recording.allocations
        self.reported = recording.reported
        self.clock = recording.clock
        self.live = usage(recording).live
        self.peak = peak(recording).position
        # Each event is the start or the end of one row; -1 in a damaged file.
        started = (self.rows.start >= 0) & (self.rows.start < recording.length)
        allocated, freed = np.flatnonzero(started), np.flatnonzero(self.rows.end < recording.length)
        self.row = np.full(recording.length, -1)
        self.row[self.rows.end[freed]] = freed
        self.row[self.rows.start[allocated]] = allocated
        self.step = _steps(recording)

    def fields(self) -> Json:
        snapshots, active, special = self._at_peak()
        stats = self._stats(self.peak)
        return {
            "memoryProfileSnapshots": [self._snapshot(position) for position in snapshots],
            "profileSummary": {
                "peakBytesUsageLifetime": str(self.recording.reported_peak or 0),
                "peakStats": {**stats, "peakBytesInUse": str(int(self.live[self.peak]))},
                "peakStatsTimePs": self._time(self.peak),
                "memoryCapacity": str(self.recording.capacity or 0),
            },
            "activeAllocations": active,
            "specialAllocations": special,
            "sampledTimelineSnapshots": [self._snapshot(position) for position in _sample(self.live)],
        }

    def _time(self, position: int) -> str:
        return str(int(self.clock[position]) * 1000)

    def _stats(self, position: int) -> Json:
        fraction = float(self.reported.fragmentation[position])
        return {
            "stackReservedBytes": str(self.reported.reserved[position]),
            "heapAllocatedBytes": str(self.reported.in_use[position]),
            "freeMemoryBytes": str(self.reported.free[position]),
            "fragmentation": fraction if math.isfinite(fraction) else "NaN",
            "peakBytesInUse": str(self.reported.lifetime_peak[position]),
        }

    def _snapshot(self, position: int) -> Json:
        row = int(self.row[position])
        return {
            "timeOffsetPs": self._time(position),
            "aggregationStats": self._stats(position),
            "activityMetadata": self._special("unknown", "", 0) if row < 0 else self._activity(row, position),
        }

    def _activity(self, row: int, position: int) -> Json:
        rows, regions = self.rows, self.recording.regions
        base = int(regions.index[0]) if len(regions) else 0
        return self._special(rows.name[row], rows.op[row], int(rows.size[row])) | {
            "memoryActivity": "ALLOCATION" if rows.start[row] == position else "DEALLOCATION",
            "requestedBytes": str(rows.requested[row]),
            "address": str(base + int(rows.offset[row]) if rows.offset[row] >= 0 else 0),
            "stepId": str(self.step[position]),
            "dataType": DTYPES.get(rows.dtype[row], "INVALID"),
            "tensorShape": rows.shape[row],
        }

    def _at_peak(self) -> tuple[list[int], list[Json], list[Json]]:
        """Return the events of the live allocations, these allocations by size, and live bytes without an event."""
        rows, top = self.rows, self.peak
        live = rows.live_at(top) & (rows.charge > 0)
        named = np.flatnonzero(live & (rows.start >= 0))
        texts = [column.codes[named] for column in (rows.name, rows.op, rows.dtype, rows.shape)]
        keys = np.column_stack([-rows.size[named], -rows.requested[named], *texts])  # largest first
        _, first, count = np.unique(keys, axis=0, return_index=True, return_counts=True)
        special = [
            self._special(name, region, size)
            for name, region, size in (
                ("stack", "stack", int(self.reported.reserved[top])),
                ("live before the recording", "persist/dynamic", int(rows.charge[live & (rows.start < 0)].sum())),
                (
                    "not explained",
                    "persist/dynamic",
                    int((self.reported.in_use - explained_bytes(self.recording))[top]),
                ),
            )
            if size > 0
        ]
        active = [
            *(_active(-1 - number, number, 1) for number in range(len(special))),
            *(_active(number, -1, times) for number, times in enumerate(count.tolist())),
        ]
        sizes = [*(int(s["allocationBytes"]) for s in special), *rows.size[named][first].tolist()]
        order = sorted(range(len(active)), key=lambda number: -sizes[number])
        return rows.start[named][first].tolist(), [active[number] for number in order], special

    def _special(self, name: str, region: str, size: int) -> Json:
        return {
            "memoryActivity": "ALLOCATION",
            "requestedBytes": str(size),
            "allocationBytes": str(size),
            "address": "0",
            "tfOpName": name,
            "stepId": str(self.step[self.peak]),
            "regionType": region,
            "dataType": "INVALID",
            "tensorShape": "unknown",
        }


def _active(snapshot: int, special: int, count: int) -> Json:
    return {"snapshotIndex": str(snapshot), "specialIndex": str(special), "numOccurrences": str(count)}


def _steps(recording: Recording) -> I64:
    """Return per position the number of its step, counted from 0; 0 where no steps are marked."""
    spans, clock = recording.spans, recording.clock
    if spans is None or clock is None:
        return np.zeros(recording.length, dtype=np.int64)
    started = np.searchsorted(spans.start_ns[spans.kind == SpanKind.STEP], clock, side="right")
    return np.maximum(started - 1, 0)


def _sample(live: I64) -> list[int]:
    """Return every position; if they are too many, the minimum and maximum of each of equal intervals."""
    if len(live) <= MAX_SNAPSHOTS:
        return list(range(len(live)))
    width = -(-len(live) // (MAX_SNAPSHOTS // 2))
    intervals = np.pad(live, (0, -len(live) % width), mode="edge").reshape(-1, width)
    within = np.r_[intervals.argmax(axis=1), intervals.argmin(axis=1)]
    positions: list[int] = np.unique(np.tile(np.arange(len(intervals)) * width, 2) + within).tolist()
    return positions


MAX_EXECUTIONS = 10_000  # of a plane
TPU = "TPU core "


def memory_profile(recordings: list[Recording]) -> Json:
    """Return XProf's answer for one host, given the recordings of its allocators; XProf's page opens the first.

    InputError where every one of them fails.
    """
    found, failed = each(recordings, lambda recording: (memory_id(recording), AllocatorProfile(recording).fields()))
    if failed and not found:
        raise InputError("No allocator can be shown", failed[0].file, failed[0].text)
    profiles = dict(found)
    return {
        "memoryProfilePerAllocator": profiles,
        "numHosts": 1,
        "memoryIds": list(profiles),
        "version": 1,
        "hloModules": _hlo_modules(recordings),
    }


def memory_id(recording: Recording) -> str:
    """Return XProf's name of a memory: the allocator's name, or the number of a TPU core."""
    return recording.memory.removeprefix(TPU)


def _hlo_modules(recordings: list[Recording]) -> list[Json]:
    """Return the executions of programs, on TPU cores or, on other devices, as called by the host."""
    cores = {int(name): r for r in recordings if r.memory.startswith(TPU) and (name := memory_id(r)).isdecimal()}
    planes = [(f"TPU:{core}", recording) for core, recording in sorted(cores.items())] or [
        ("host", r) for r in recordings[:1]
    ]
    executions = [
        (plane, r.spans, span)
        for plane, r in planes
        if r.spans is not None
        for span in np.flatnonzero(r.spans.kind == SpanKind.EXECUTION)[:MAX_EXECUTIONS].tolist()
    ]
    return [
        {
            "name": spans.name[span],
            "startTimePs": str(int(spans.start_ns[span]) * 1000),
            "endTimePs": str(int(spans.end_ns[span]) * 1000),
            "id": str(number),
            "planeName": plane,
        }
        for number, (plane, spans, span) in enumerate(executions)
    ]
