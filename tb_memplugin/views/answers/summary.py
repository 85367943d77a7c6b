"""The recordings of a path, largest peak first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NotRequired, Protocol

from tb_memplugin.model.recording import Recording
from tb_memplugin.views.answers.asked import MORE, SCHEMA_VERSION, AnswerJson, Asked, Question
from tb_memplugin.views.answers.bounded import bounded
from tb_memplugin.views.shared.json_types import (
    AboutFile,
    LeftOutProgramsJson,
    OmittedJson,
    ProblemJson,
    SummaryJson,
    problems_json,
)
from tb_memplugin.views.shared.summary import summaries


class LeftOutPrograms(Protocol):
    """The programs of a dump that were not read."""

    @property
    def programs(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class SummaryAnswerJson(AnswerJson):
    """The recordings of a path, largest peak first."""

    recordings: list[SummaryJson]
    problems: list[ProblemJson]
    """Files and recordings that cannot be read or analyzed."""
    left_out: NotRequired[list[LeftOutProgramsJson]]
    omitted: NotRequired[OmittedJson]


def summary(
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
