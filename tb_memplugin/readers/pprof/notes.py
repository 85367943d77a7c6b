"""Notes that tb_memplugin.capture.snapshot adds to a device profile, as comments of the pprof format."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np

from tb_memplugin.model.source_tables import ReportedMemory
from tb_memplugin.readers.common.limits import MAX_BYTES

PREFIX = "tb_memplugin "
MAX_REASON = 100  # characters


@dataclass(frozen=True)
class Notes:
    """The training step, and per device its allocator's figures in bytes."""

    step: int | None = None
    devices: dict[str, dict[str, int]] = field(
        default_factory=dict
    )  # device.memory_stats() by the profile's device labels
    reason: str = ""  # for the snapshot


def read(comments: tuple[str, ...]) -> Notes:
    """Parse the first comment with notes; return empty notes where there is none or it is damaged."""
    for comment in comments:
        if comment.startswith(PREFIX):
            try:
                note = json.loads(comment.removeprefix(PREFIX))
            except (ValueError, RecursionError):
                continue
            if isinstance(note, dict):
                return Notes(_byte_count(note.get("step")), _devices(note.get("devices")), _reason(note.get("reason")))
    return Notes()


def reported(device: dict[str, int]) -> ReportedMemory | None:
    """Return the figures of the device's allocator; None where the notes lack them."""
    if "bytes_in_use" not in device:
        return None
    in_use, limit = device["bytes_in_use"], device.get("bytes_limit")
    reserved = device.get("bytes_reserved", 0)
    free = max(0, (limit or 0) - in_use - reserved)
    largest = device.get("largest_free_block_bytes")  # always 0 on GPUs
    fragmentation = 1 - min(1.0, largest / free) if largest and free else np.nan
    peak = device.get("peak_bytes_in_use", in_use)
    figures = np.array([in_use, reserved, free, peak], dtype=np.int64).reshape(4, 1)
    return ReportedMemory(figures[0], figures[1], figures[2], figures[3], np.array([fragmentation]))


def _devices(stats_by_device: object) -> dict[str, dict[str, int]]:
    if not isinstance(stats_by_device, dict):
        return {}
    return {
        str(name): {str(key): number for key, value in stats.items() if (number := _byte_count(value)) is not None}
        for name, stats in stats_by_device.items()
        if isinstance(stats, dict)
    }


def _reason(value: object) -> str:
    return value[:MAX_REASON] if isinstance(value, str) else ""


def _byte_count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_BYTES else None
