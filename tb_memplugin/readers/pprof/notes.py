"""What tb_memplugin.capture.snapshot adds to a device profile, in the comments that pprof's format has room for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np

from tb_memplugin.model.tables import ReportedMemory
from tb_memplugin.readers.common.limits import MAX_BYTES

PREFIX = "tb_memplugin "


@dataclass(frozen=True)
class Notes:
    step: int | None = None
    devices: dict[str, dict[str, int]] = field(default_factory=dict)  # device.memory_stats() by the profile's labels


def read(comments: tuple[str, ...]) -> Notes:
    """Of the first comment that is such a note; nothing where there is none, or it is damaged."""
    for comment in comments:
        if comment.startswith(PREFIX):
            try:
                note = json.loads(comment.removeprefix(PREFIX))
            except (ValueError, RecursionError):
                continue
            if isinstance(note, dict):
                return Notes(_whole(note.get("step")), _devices(note.get("devices")))
    return Notes()


def reported(device: dict[str, int]) -> ReportedMemory | None:
    """What the device's allocator said then; None where it said nothing."""
    if "bytes_in_use" not in device:
        return None
    in_use, limit = device["bytes_in_use"], device.get("bytes_limit")
    held = device.get("bytes_reserved", 0)
    free = max(0, (limit or 0) - in_use - held)
    largest = device.get("largest_free_block_bytes")
    fragmented = 1 - min(1.0, largest / free) if largest is not None and free else np.nan
    peak = device.get("peak_bytes_in_use", in_use)
    figures = np.array([in_use, held, free, peak], dtype=np.int64).reshape(4, 1)
    return ReportedMemory(figures[0], figures[1], figures[2], figures[3], np.array([fragmented]))


def _devices(found: object) -> dict[str, dict[str, int]]:
    if not isinstance(found, dict):
        return {}
    return {
        str(name): {str(key): whole for key, value in stats.items() if (whole := _whole(value)) is not None}
        for name, stats in found.items()
        if isinstance(stats, dict)
    }


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_BYTES else None
