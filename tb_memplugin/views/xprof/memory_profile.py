"""XProf's own Memory Profile answer, from the Recordings of a host's allocators: for the stock page and for scripts.

The schema is XProf 2.24's: bytes, picoseconds, 64-bit numbers as strings, no field left out. The numbers are ours:
the timeline holds every event up to SNAPSHOTS and both extremes of each stretch beyond, so that no valley is lost;
the peak is the first moment of the most in use; what is live at it was allocated in any step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans

SNAPSHOTS = 10_000  # of an allocator: about 4 MB of JSON, and as many points as the stock page's chart can draw

# TensorFlow's names for what the recordings name as XLA does.
DTYPES = {
    "f32": "float", "f64": "double", "f16": "half", "bf16": "bfloat16", "s64": "int64", "s32": "int32",
    "s16": "int16", "s8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
    "pred": "bool", "c64": "complex64", "c128": "complex128",
}  # fmt: skip

TPU = "TPU core "

Json = dict[str, Any]


def memory_profile(recordings: list[Recording]) -> Json:
    """XProf's answer for one host, whose allocators' recordings these are; the first is what its page opens with."""
    profiles = {memory_id(recording): _Answer(recording).fields() for recording in recordings}
    return {
        "memoryProfilePerAllocator": profiles,
        "numHosts": 1,
        "memoryIds": list(profiles),
        "version": 1,
        "hloModules": _modules(recordings),
    }


def memory_id(recording: Recording) -> str:
    """As XProf names memories: an allocator's name, or the bare number of a TPU core."""
    return recording.memory.removeprefix(TPU)


def _modules(recordings: list[Recording]) -> list[Json]:
    """Executions of compiled programs: a TPU core's own; elsewhere the host's calls, which come before the device's."""
    cores = {int(name): r for r in recordings if r.memory.startswith(TPU) and (name := memory_id(r)).isdecimal()}
    planes = [(f"TPU:{core}", recording) for core, recording in sorted(cores.items())] or [
        ("host", r) for r in recordings[:1]
    ]
    found = [(plane, r.spans, span) for plane, r in planes if r.spans is not None for span in _executions(r.spans)]
    return [
        {
            "name": spans.name[span],
            "startTimePs": str(int(spans.start_ns[span]) * 1000),
            "endTimePs": str(int(spans.end_ns[span]) * 1000),
            "id": str(number),
            "planeName": plane,
        }
        for number, (plane, spans, span) in enumerate(found)
    ]


def _executions(spans: NamedSpans) -> list[int]:
    rows: list[int] = np.flatnonzero(spans.kind == SpanKind.EXECUTION)[:SNAPSHOTS].tolist()
    return rows


class _Answer:
    """The fields of one allocator."""

    def __init__(self, recording: Recording) -> None:
        if recording.reported is None or recording.clock is None:
            raise InputError("Not an allocator's recording", recording.title, "ask for memory_viewer")
        self.recording = recording
        self.rows = recording.allocations
        self.reported = recording.reported
        self.clock = recording.clock
        self.live = usage(recording).live
        self.peak = peak(recording).position
        # Each event began one row, or ended one.
        born, freed = np.flatnonzero(self.rows.start >= 0), np.flatnonzero(self.rows.end < recording.length)
        self.row = np.full(recording.length, -1)
        self.row[self.rows.end[freed]] = freed
        self.row[self.rows.start[born]] = born
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
            "sampledTimelineSnapshots": [self._snapshot(position) for position in _sampled(self.live)],
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
        row, rows = int(self.row[position]), self.rows
        base = int(self.recording.regions.index[0])
        return {
            "timeOffsetPs": self._time(position),
            "aggregationStats": self._stats(position),
            "activityMetadata": {
                "memoryActivity": "ALLOCATION" if rows.start[row] == position else "DEALLOCATION",
                "requestedBytes": str(rows.requested[row]),
                "allocationBytes": str(rows.size[row]),
                "address": str(base + int(rows.offset[row]) if rows.offset[row] >= 0 else 0),
                "tfOpName": rows.name[row],
                "stepId": str(self.step[position]),
                "regionType": rows.op[row],
                "dataType": DTYPES.get(rows.dtype[row], "INVALID"),
                "tensorShape": rows.shape[row],
            },
        }

    def _at_peak(self) -> tuple[list[int], list[Json], list[Json]]:
        """Positions of the allocations behind what is live at the peak, what is live, and what no event stands for."""
        rows, top = self.rows, self.peak
        live = (rows.start <= top) & (top < rows.end) & (rows.charge > 0)
        named = np.flatnonzero(live & (rows.start >= 0))
        texts = [column.codes[named] for column in (rows.name, rows.op, rows.dtype, rows.shape)]
        alike = np.column_stack([-rows.size[named], -rows.requested[named], *texts])  # largest first
        _, first, count = np.unique(alike, axis=0, return_index=True, return_counts=True)
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
    """Per position how many marked steps began before the last one to begin by then: 0 where none is marked."""
    spans, clock = recording.spans, recording.clock
    if spans is None or clock is None:
        return np.zeros(recording.length, dtype=np.int64)
    begun = np.searchsorted(spans.start_ns[spans.kind == SpanKind.STEP], clock, side="right")
    before: I64 = np.maximum(begun - 1, 0)
    return before


def _sampled(live: I64) -> list[int]:
    """Every position, or where those are too many, those of the most and the least in each of equal stretches."""
    if len(live) <= SNAPSHOTS:
        return list(range(len(live)))
    width = -(-len(live) // (SNAPSHOTS // 2))
    stretches = np.pad(live, (0, -len(live) % width), mode="edge").reshape(-1, width)
    within = np.r_[stretches.argmax(axis=1), stretches.argmin(axis=1)]
    kept: list[int] = np.unique(np.tile(np.arange(len(stretches)) * width, 2) + within).tolist()
    return kept
