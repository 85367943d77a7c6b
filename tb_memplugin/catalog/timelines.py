"""Links from PyTorch snapshots to the memory timelines of their run, which categorize the same tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tb_memplugin.model.kinds import RecordingKind, Role
from tb_memplugin.model.recording import Recording


def link_timelines(recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings, with each snapshot linked to the timelines of its run that have categories.

    The same snapshot and timelines give the same recording, so that memoized results are found again.
    """
    timelines = [recording for recording in recordings if _has_categories(recording)]
    return [
        _link(r, tuple(timeline for timeline in timelines if timeline.run == r.run)) if r.kind.has_tensor_stacks else r
        for r in recordings
    ]


def _has_categories(recording: Recording) -> bool:
    if recording.kind is not RecordingKind.TORCH_TIMELINE or recording.capture_info is None:
        return False
    return bool((recording.allocations.role != Role.UNKNOWN).any())


def _link(snapshot: Recording, timelines: tuple[Recording, ...]) -> Recording:
    if not timelines or timelines == snapshot.timelines:
        return snapshot
    linked: Recording | None = snapshot.memo.get(link_timelines)
    if linked is None or linked.timelines != timelines:
        linked = snapshot.memo[link_timelines] = replace(snapshot, timelines=timelines)
    return linked
