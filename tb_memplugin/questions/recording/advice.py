"""Advice: changes that lower the peak of a recording, with sentences and code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NotRequired, TypedDict

import numpy as np

from tb_memplugin.analysis.advice import advise
from tb_memplugin.analysis.usage.live_bytes import caveats, peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION, AnswerJson, Asked, bounded
from tb_memplugin.questions.asking.endpoint import EACH_CHOICE, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING
from tb_memplugin.questions.asking.json_types import CaveatJson, OmittedJson, caveat_json
from tb_memplugin.questions.records import record
from tb_memplugin.sizes import bytes_text, percent_text

MAX_LINES = 5  # pieces printed in the terminal


class AdviceJson(TypedDict):
    """One change that lowers the peak: its rows and its saving."""

    kind: str
    title: str
    sentence: str
    change: str
    """The change as code, of several lines if need be; may be empty."""
    bytes: int
    saving_bytes: int
    saving_at_least: int
    """The least that the change saves where the compiler decides, else `saving_bytes`; and the most, likewise."""
    saving_at_most: int
    new_peak_bytes: int
    saving_of: Literal["peak", "reserved"]
    """The figure that the change lowers: the peak of live bytes, or the bytes that the allocator reserves then."""
    before_bytes: int
    """The bytes of `saving_of` now, and after the change."""
    after_bytes: int
    rows: list[tuple[int, int]]
    """Ranges of row numbers: the first and the last of each."""
    rows_total: int


class AdviceListJson(TypedDict):
    """All advice about a recording, in the order in which to try it."""

    peak_bytes: int
    advice: list[AdviceJson]


@endpoint("advice", RECORDING, report=EACH_CHOICE)
def advice(recording: Recording) -> AdviceListJson:
    """Return all advice about a recording, in the order in which to try it, with the rows that each is about."""
    return {
        "peak_bytes": peak(recording).bytes,
        "advice": [
            record(
                AdviceJson,
                piece,
                kind=piece.kind.value,
                saving_at_least=piece.saving.at_least,
                saving_at_most=piece.saving.at_most,
                saving_of="peak" if piece.saving.reserved is None else "reserved",
                before_bytes=piece.saving.before,
                after_bytes=piece.saving.before - piece.saving_bytes,
                rows=_ranges(piece.rows),
                rows_total=len(piece.rows),
            )
            for piece in advise(recording)
        ],
    }


def _ranges(rows: I64) -> list[tuple[int, int]]:
    """Return the first and the last of each run of consecutive numbers, in ascending order."""
    ordered = np.sort(rows)
    first = np.diff(ordered, prepend=-2) != 1
    last = np.roll(first, -1)
    return list(zip(ordered[first].tolist(), ordered[last].tolist(), strict=True))


def advice_lines(recording: Recording) -> Iterator[str]:
    """Yield the advice as text, in the order in which to try it; nothing where there is no advice."""
    yield from lines(advice(recording)["advice"])


def lines(pieces: Sequence[AdviceJson]) -> Iterator[str]:
    """Yield lines of text for pieces of advice. Names are raw: the caller removes control characters."""
    if not pieces:
        return
    yield "Advice, each change simulated on its own:"
    for piece in pieces[:MAX_LINES]:
        saved = piece["saving_bytes"]
        of = " of reserved" if piece["saving_of"] == "reserved" else ""
        yield ""
        yield f"  {bytes_text(-saved)} ({percent_text(saved, piece['before_bytes'])}{of})  {piece['title']}"
        yield f"      {piece['sentence']}"
        yield from (f"      {line}" for line in piece["change"].splitlines())
    if len(pieces) > MAX_LINES:
        yield ""
        yield f"and {len(pieces) - MAX_LINES:,} more; --json lists all"


class AdvicePieceJson(TypedDict):
    """One change, each simulated on its own."""

    kind: str
    """The kind of change, such as `donation`."""
    title: str
    """The change in a few words."""
    sentence: str
    """The reason why it helps."""
    change: str
    """The code to write."""
    bytes: int
    """The bytes of the buffers it concerns."""
    saving_bytes: int
    """By how much the peak falls with this change alone; of `reserved`, by how much less is reserved."""
    saving_at_least_bytes: int
    """The least saving where the compiler decides; equals `saving_bytes` where it does not."""
    saving_at_most_bytes: int
    """The most saving where the compiler decides; equals `saving_bytes` where it does not."""
    saving_of: str
    """The figure that the change lowers: `peak`, or `reserved` for memory in gaps between buffers."""
    before_bytes: int
    """The peak now; of `reserved`, what the allocator reserves at the peak."""
    after_bytes: int
    """`before_bytes` less `saving_bytes`."""
    rows: list[list[int]]
    """The buffers it concerns, as pairs of a first and a last row of the recording."""
    rows_total: int
    """The number of buffers that it concerns."""
    omitted: NotRequired[OmittedJson]


class AdviceAnswerJson(AnswerJson):
    """The changes that lower the peak, in the order in which to try them."""

    recording: str
    """The recording's id."""
    peak_bytes: int
    """Its peak."""
    caveats: list[CaveatJson]
    """Of the recording."""
    advice: list[AdvicePieceJson]
    """Changes that lower the peak, in the order in which to try them."""
    omitted: NotRequired[OmittedJson]


def advice_answer(recording: Recording, asked: Asked) -> AdviceAnswerJson:
    """Return the first pieces of advice about a recording."""
    found = advice(recording)
    pieces = [_piece(piece) for piece in found["advice"]]
    rows = [piece["rows"][0][0] for piece in pieces[:1] if piece["rows"]]
    answer: AdviceAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "recording": recording.id,
        "peak_bytes": found["peak_bytes"],
        "caveats": [*map(caveat_json, caveats(recording))],
        "advice": pieces,
        "next": asked.next(
            *(asked.question("buffers", "a buffer of the first piece of advice", recording.id, row=row) for row in rows)
        ),
    }
    return bounded(answer, asked.top)


def _piece(piece: AdviceJson) -> AdvicePieceJson:
    return record(
        AdvicePieceJson,
        piece,
        saving_at_least_bytes=piece["saving_at_least"],
        saving_at_most_bytes=piece["saving_at_most"],
        rows=[list(pair) for pair in piece["rows"]],
    )
