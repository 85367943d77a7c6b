"""Calls of the tools: the answers of the commands' JSON, with further questions as calls of tools."""

from __future__ import annotations

from collections.abc import Mapping

from tb_memplugin.hosts.mcp.reading import LogdirReader
from tb_memplugin.views.answers import asked as questions
from tb_memplugin.views.answers.asked import Asked, NextJson, Question


def tool_call(question: Question) -> NextJson:
    """Phrase a further question as a call of a tool."""
    return {"why": question.why, "tool": question.command, "arguments": dict(question.arguments)}


def _asked(path: str, top: int) -> Asked:
    return Asked(path, top, tool_call)


def call_summary(reader: LogdirReader, path: str = ".", top: int = questions.TOP) -> object:
    from tb_memplugin.views.answers.summary import summary

    listing = reader.listing(path)
    return summary(listing.recordings, listing.problems, _asked(path, top), listing.left_out)


def call_explain(
    reader: LogdirReader, path: str = ".", recording: str | None = None, at: str | None = None, top: int = questions.TOP
) -> object:
    from tb_memplugin.views.answers.explain import explain

    chosen, listing = reader.recording(path, recording)
    problems = listing.problems if recording is None else ()
    return explain(chosen, listing.recordings, _asked(path, top), at, problems)


def call_buffers(
    reader: LogdirReader,
    path: str = ".",
    recording: str | None = None,
    at: str | None = None,
    match: str | None = None,
    row: int | None = None,
    top: int = questions.TOP,
) -> object:
    from tb_memplugin.views.answers.buffers import buffers, one_buffer
    from tb_memplugin.views.shared.selectors import choose_with_allocations

    chosen = reader.recording(path, recording, choose_with_allocations)[0]
    if row is not None:
        return one_buffer(chosen, row, _asked(path, top))
    return buffers(chosen, _asked(path, top), at, match)


def call_advice(
    reader: LogdirReader, path: str = ".", recording: str | None = None, top: int = questions.TOP
) -> object:
    from tb_memplugin.views.answers.advice import advice
    from tb_memplugin.views.shared.selectors import choose_with_allocations

    return advice(reader.recording(path, recording, choose_with_allocations)[0], _asked(path, top))


def call_compare(
    reader: LogdirReader,
    a: str,
    b: str,
    recording: str = "",
    by: str = "role",
    at_a: str | None = None,
    at_b: str | None = None,
    top: int = questions.TOP,
) -> object:
    from tb_memplugin.views.answers.compare import compare

    return compare(reader.pairs(a, b, recording), _asked(a, top), b, by, at_a, at_b)


def call_fit(
    reader: LogdirReader,
    path: str = ".",
    recording: str | None = None,
    target: str | None = None,
    knobs: Mapping[str, object] | None = None,
    top: int = questions.TOP,
) -> object:
    from tb_memplugin.views.answers.chips import chips_that_fit
    from tb_memplugin.views.answers.fit import candidates, fit_answer, largest_values, no_candidates
    from tb_memplugin.views.shared.selectors import choose_main_memory

    records, targets = reader.fits(path), [target] if target else []
    wanted = {name: str(value) for name, value in (knobs or {}).items()}
    if recording is None and (found := candidates(records.outcomes, targets, wanted)):
        question = _asked(".", top)  # names of runs are relative to the logdir
        return fit_answer(found, largest_values(found), question, problems=records.problems, programs=records.programs)
    if recording is None and (wanted or records.problems):
        raise no_candidates(path, records.problems)
    return chips_that_fit(reader.recording(path, recording, choose_main_memory)[0], _asked(path, top), targets)
