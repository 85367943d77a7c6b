"""Changes that lower the peak of a recording, with sentences and code."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from tb_memplugin.analysis.usage.contradictions import caveats
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.answers.asked import SCHEMA_VERSION, AnswerJson, Asked
from tb_memplugin.views.answers.bounded import bounded
from tb_memplugin.views.page.advice import AdviceJson
from tb_memplugin.views.page.advice import advice as all_advice
from tb_memplugin.views.shared.json_types import CaveatJson, OmittedJson, caveat_json


class AdvicePieceJson(TypedDict):
    """One change, each simulated on its own."""

    kind: str
    title: str
    sentence: str
    change: str
    """Code of several lines; may be empty."""
    bytes: int
    """Of the buffers that it concerns."""
    saving_bytes: int
    saving_at_least_bytes: int
    saving_at_most_bytes: int
    saving_of: str
    """`peak`, or `reserved` for memory in gaps between buffers."""
    before_bytes: int
    after_bytes: int
    rows: list[list[int]]
    """Pairs of a first and a last row."""
    rows_total: int
    omitted: NotRequired[OmittedJson]


class AdviceAnswerJson(AnswerJson):
    """The changes that lower the peak, in the order in which to try them."""

    recording: str
    peak_bytes: int
    caveats: list[CaveatJson]
    advice: list[AdvicePieceJson]
    omitted: NotRequired[OmittedJson]


def advice(recording: Recording, asked: Asked) -> AdviceAnswerJson:
    """Return the first pieces of advice about a recording."""
    found = all_advice(recording)
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
    return {
        "kind": piece["kind"],
        "title": piece["title"],
        "sentence": piece["sentence"],
        "change": piece["change"],
        "bytes": piece["bytes"],
        "saving_bytes": piece["saving_bytes"],
        "saving_at_least_bytes": piece["saving_at_least"],
        "saving_at_most_bytes": piece["saving_at_most"],
        "saving_of": piece["saving_of"],
        "before_bytes": piece["before_bytes"],
        "after_bytes": piece["after_bytes"],
        "rows": [list(pair) for pair in piece["rows"]],
        "rows_total": piece["rows_total"],
    }
