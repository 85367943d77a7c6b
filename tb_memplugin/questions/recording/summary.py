"""The summary of a recording, for lists on the page and in exports, and of all recordings of a path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NotRequired, Protocol

from tb_memplugin.analysis.isolate import each
from tb_memplugin.analysis.usage.live_bytes import caveats, peak, reserved_bytes
from tb_memplugin.model.recording import CaptureInfo, Recording
from tb_memplugin.questions.asking.asked import MORE, SCHEMA_VERSION, AnswerJson, Asked, Question, bounded
from tb_memplugin.questions.asking.json_types import (
    AboutFile,
    LeftOutProgramsJson,
    OmittedJson,
    ProblemJson,
    SummaryJson,
    caveat_json,
    problems_json,
)


def summary(recording: Recording) -> SummaryJson:
    """Summarize a recording in JSON-compatible values; unknown figures are None."""
    top = peak(recording)
    taken = recording.capture_info or CaptureInfo()
    return {
        "id": recording.id,
        "kind": recording.kind.value,
        "title": recording.title,
        "backend": recording.backend.value,
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


class LeftOutPrograms(Protocol):
    """The programs of a dump that were not read."""

    @property
    def programs(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class SummaryAnswerJson(AnswerJson):
    """The recordings of a path, largest peak first."""

    recordings: list[SummaryJson]
    """The recordings, largest peak first."""
    problems: list[ProblemJson]
    """The files and recordings that cannot be read or analyzed."""
    left_out: NotRequired[list[LeftOutProgramsJson]]
    """One for each XLA dump of which only the largest programs are listed."""
    omitted: NotRequired[OmittedJson]


def summary_of_path(
    recordings: Sequence[Recording],
    problems: Iterable[AboutFile],
    asked: Asked,
    left_out: Iterable[LeftOutPrograms] = (),
) -> SummaryAnswerJson:
    """Return the largest recordings, the problems of files, and what to ask about the largest recording."""
    found, failed = summaries(recordings)
    return summary_answer(found, [*problems_json(problems), *failed], asked, left_out)


def summary_answer(
    found: list[SummaryJson], problems: list[ProblemJson], asked: Asked, left_out: Iterable[LeftOutPrograms] = ()
) -> SummaryAnswerJson:
    """Return summaries, the largest peak first, and what to ask about the largest one."""
    not_read: list[LeftOutProgramsJson] = [{"programs": one.programs, "bytes": one.bytes} for one in left_out]
    answer: SummaryAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "recordings": found,
        "problems": problems,
        "next": asked.next(*_questions(found, asked)),
    }
    if not_read:
        answer["left_out"] = not_read
    return bounded(answer, asked.top)


def _questions(found: Sequence[SummaryJson], asked: Asked) -> list[Question]:
    steps = [asked.question("explain", "what is live at the largest peak", found[0]["id"])] if found else []
    leaking = next((one["id"] for one in found if one["axis"] == "TIME"), None)
    if leaking is not None and leaking != found[0]["id"]:
        steps.append(asked.question("explain", "memory over time, and leaks", leaking))
    if asked.top is not None and len(found) > asked.top:
        steps.append(asked.question("summary", "more recordings", top=min(len(found), MORE)))
    return steps
