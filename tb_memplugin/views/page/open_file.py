"""A file that is dropped on the page, as a run of its own."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.errors import InputError
from tb_memplugin.views.endpoints.endpoint import endpoint
from tb_memplugin.views.endpoints.inputs import BODY, SOURCE, FreeText, Integer
from tb_memplugin.views.endpoints.source import Source
from tb_memplugin.views.shared.json_types import SummaryJson
from tb_memplugin.views.shared.summary import summary

MAX_SIZE = 1 << 50


class OpenedFileJson(TypedDict):
    """The recordings of a file, once all of its pieces have arrived."""

    recordings: list[SummaryJson]
    run: str
    received: int
    """Bytes that have arrived."""
    message: str | None
    """The reason why the file cannot be shown; null if it can be, so far."""


@endpoint(
    "open_file",
    SOURCE,
    FreeText("key"),
    FreeText("name"),
    Integer("size", 1, MAX_SIZE),
    Integer("at", 0, MAX_SIZE),
    BODY,
    post=True,
)
def open_file(source: Source, key: str, name: str, size: int, at: int, piece: bytes) -> OpenedFileJson:
    """Add a piece of a file, which is a run once it is complete. `key` is the same for all pieces of a file."""
    try:
        opened = source.open_file(key, name, size, at, piece)
    except InputError as error:
        return {"recordings": [], "run": "", "received": at, "message": str(error)}
    recordings = [*map(summary, opened.recordings)]
    return {"recordings": recordings, "run": opened.run, "received": opened.received, "message": None}
