"""The summary of a recording, for lists on the page and in exports, and of all recordings of a path."""

from collections.abc import Sequence
from typing import NotRequired

from tb_memplugin.analysis.isolate import each
from tb_memplugin.analysis.usage.live_bytes import caveats, peak, reserved_bytes
from tb_memplugin.model.recording import CaptureInfo, Recording
from tb_memplugin.questions.asking.asked import MORE, AnswerJson, Asked, Question
from tb_memplugin.questions.asking.json_types import (
    CaveatJson,
    LeftOutProgramsJson,
    ProblemJson,
    SummaryJson,
    problems_json,
)
from tb_memplugin.questions.records import record, records


def summary(recording: Recording) -> SummaryJson:
    """Summarize a recording in JSON-compatible values; unknown figures are None."""
    top = peak(recording)
    taken = recording.capture_info or CaptureInfo()
    return record(
        SummaryJson,
        recording,
        taken,
        end_ns=_end_ns(recording),
        allocations=int(recording.allocation_counts().sum()),
        peak_bytes=top.bytes,
        peak_position=top.position,
        # PyTorch's profiler may record tensors without their segments.
        reserved_bytes=None if recording.kind.is_torch and recording.reserved is None else reserved_bytes(recording),
        reported_peak_bytes=recording.reported_peak,
        capacity_bytes=recording.capacity,
        capacity_source=recording.capacity_source if recording.capacity else "",
        live=recording.is_live,
        interval_ns=recording.sampling.interval_ns if recording.sampling is not None else None,
        reason=taken.reason or None,
        caveats=caveats_json(recording),
    )


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


class RecordingAnswerJson(AnswerJson):
    """Keys of answers about one recording."""

    recording: str
    """The recording's id."""
    caveats: list[CaveatJson]
    """The caveats of the recording."""


def about(recording: Recording) -> dict[str, object]:
    """Return the keys of answers about one recording."""
    return {"recording": recording.id, "caveats": caveats_json(recording)}


def caveats_json(recording: Recording) -> list[CaveatJson]:
    """Return the caveats of a recording for JSON."""
    return records(CaveatJson, caveats(recording))


class SummaryAnswerJson(AnswerJson):
    """The recordings of a path, largest peak first."""

    recordings: list[SummaryJson]
    """The recordings, largest peak first."""
    problems: list[ProblemJson]
    """The files and recordings that cannot be read or analyzed."""
    left_out: NotRequired[list[LeftOutProgramsJson]]
    """One for each XLA dump of which only the largest programs are listed."""


def summary_answer(
    found: list[SummaryJson], problems: list[ProblemJson], asked: Asked, left_out: Sequence[object] = ()
) -> SummaryAnswerJson:
    """Return summaries, the largest peak first, and what to ask about the largest one.

    `left_out`: for each dump, the `programs` that were not read, and the `bytes` of the largest one.
    """
    not_read = {"left_out": records(LeftOutProgramsJson, left_out)} if left_out else {}
    further = _questions(found, asked)
    return asked.answer(SummaryAnswerJson, not_read, recordings=found, problems=problems, next=further)


def _questions(found: Sequence[SummaryJson], asked: Asked) -> list[Question]:
    steps = [asked.question("explain", "what is live at the largest peak", found[0]["id"])] if found else []
    leaking = next((one["id"] for one in found if one["axis"] == "TIME"), None)
    if leaking is not None and leaking != found[0]["id"]:
        steps.append(asked.question("explain", "memory over time, and leaks", leaking))
    if asked.top is not None and len(found) > asked.top:
        steps.append(asked.question("summary", "more recordings", top=min(len(found), MORE)))
    return steps
