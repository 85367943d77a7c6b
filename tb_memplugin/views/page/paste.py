"""A pasted error message, as a run of its own."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.errors import InputError
from tb_memplugin.views.endpoints.endpoint import endpoint
from tb_memplugin.views.endpoints.inputs import BODY, SOURCE
from tb_memplugin.views.endpoints.source import Source
from tb_memplugin.views.shared.json_types import SummaryJson
from tb_memplugin.views.shared.oom import sentences
from tb_memplugin.views.shared.summary import summary


class PasteResultJson(TypedDict):
    """The recordings that a pasted text describes."""

    recordings: list[SummaryJson]
    run: str
    explanation: list[str]
    """The failure in sentences."""
    message: str | None
    """The reason why the text is not an out-of-memory error; null if it is one."""


@endpoint("paste", SOURCE, BODY, post=True)
def paste(source: Source, text: bytes) -> PasteResultJson:
    """Add the text of an error as a run. `message` is the reason why it is not one, which the page shows."""
    try:
        run, recordings = source.paste(text)
    except InputError as error:
        return {"recordings": [], "run": "", "explanation": [], "message": str(error)}
    return {
        "recordings": [*map(summary, recordings)],
        "run": run,
        "explanation": sentences(recordings[0]),
        "message": None,
    }
