"""One recording in one record: the contract of `summary --json`, and what the page's lists show."""

from __future__ import annotations

from typing import Any

from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.model.recording import Recording


def summary(recording: Recording) -> dict[str, Any]:
    """Plain values only; a figure that is unknown is None."""
    top = peak(recording)
    return {
        "id": recording.id,
        "kind": recording.kind.value,
        "title": recording.title,
        "run": recording.run,
        "host": recording.host,
        "memory": recording.memory,
        "axis": recording.axis.value,
        "allocations": len(recording.allocations) if recording.counts is None else int(recording.counts.sum()),
        "peak_bytes": top.bytes,
        "peak_position": top.position,
        "reserved_bytes": None if _untold(recording) else reserved_bytes(recording),
        "reported_peak_bytes": recording.reported_peak,
        "capacity_bytes": recording.capacity,
        "caveats": [{"code": c.code, "text": c.text, "bytes": c.bytes} for c in recording.caveats],
    }


def _untold(recording: Recording) -> bool:
    """A profiler of PyTorch's tells what tensors take, and may leave out what their allocator has from the device."""
    return recording.kind.is_torch and recording.held is None
