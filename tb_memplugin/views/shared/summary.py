"""The summary of a recording, for `summary --json` and for the page's lists."""

from __future__ import annotations

from collections.abc import Sequence

from tb_memplugin.analysis.isolate import each
from tb_memplugin.analysis.usage.contradictions import caveats
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.model.capture_info import CaptureInfo
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.shared.json_types import ProblemJson, SummaryJson, caveat_json, problems_json


def summary(recording: Recording) -> SummaryJson:
    """Summarize a recording in JSON-compatible values; unknown figures are None."""
    top = peak(recording)
    taken = recording.capture_info or CaptureInfo()
    return {
        "id": recording.id,
        "kind": recording.kind.value,
        "title": recording.title,
        "run": recording.run,
        "host": recording.host,
        "memory": recording.memory,
        "axis": recording.axis.value,
        "length": recording.length,
        "time_ns": taken.time_ns,
        "end_ns": _end_ns(recording),
        "step": taken.step,
        "allocations": int(recording.allocation_counts().sum()),
        "peak_bytes": top.bytes,
        "peak_position": top.position,
        "reserved_bytes": None if _reserved_unknown(recording) else reserved_bytes(recording),
        "reported_peak_bytes": recording.reported_peak,
        "capacity_bytes": recording.capacity,
        "capacity_source": recording.capacity_source if recording.capacity else "",
        "live": recording.is_live,
        "interval_ns": recording.sampling.interval_ns if recording.sampling is not None else None,
        "reason": (recording.capture_info and recording.capture_info.reason) or None,
        "caveats": [*map(caveat_json, caveats(recording))],
    }


def summaries(recordings: Sequence[Recording]) -> tuple[list[SummaryJson], list[ProblemJson]]:
    """Summarize recordings by their outlines; those that cannot be summarized are problems."""
    found, failed = each(recordings, lambda recording: summary(recording.outline))
    return found, problems_json(failed)


def _end_ns(recording: Recording) -> int | None:
    """Return the time of the last position of a recording over time, in nanoseconds since 1970; None where unknown."""
    began = recording.capture_info.time_ns if recording.capture_info is not None else None
    if began is None or recording.clock is None or not len(recording.clock):
        return None
    return began + int(recording.clock[-1])


def _reserved_unknown(recording: Recording) -> bool:
    """Return whether reserved bytes are missing: PyTorch's profiler may record tensors without their segments."""
    return recording.kind.is_torch and recording.reserved is None
