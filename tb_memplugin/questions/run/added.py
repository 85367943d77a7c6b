"""Runs that the page adds: files that are opened in the browser, and texts of errors that are pasted."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.errors import InputError
from tb_memplugin.questions.asking.endpoint import endpoint
from tb_memplugin.questions.asking.inputs import BODY, UPLOADS, FreeText, Integer
from tb_memplugin.questions.asking.json_types import SummaryJson
from tb_memplugin.questions.asking.source import Uploading
from tb_memplugin.questions.oom.failure import sentences
from tb_memplugin.questions.recording.summary import summary

MAX_SIZE = 1 << 50


class AddedRunJson(TypedDict):
    """A run that the page adds."""

    recordings: list[SummaryJson]
    run: str
    message: str | None
    """The reason why the file or the text cannot be shown; null if it can be, so far."""


class OpenedFileJson(AddedRunJson):
    """The recordings of a file, once all of its pieces have arrived."""

    received: int
    """Bytes that have arrived."""


@endpoint(
    "open_file",
    UPLOADS,
    FreeText("key"),
    FreeText("name"),
    Integer("size", 1, MAX_SIZE),
    Integer("at", 0, MAX_SIZE),
    BODY,
    post=True,
)
def open_file(uploads: Uploading, key: str, name: str, size: int, at: int, piece: bytes) -> OpenedFileJson:
    """Add a piece of a file, which is a run once it is complete. `key` is the same for all pieces of a file."""
    try:
        opened = uploads.open_file(key, name, size, at, piece)
    except InputError as error:
        return {"recordings": [], "run": "", "received": at, "message": str(error)}
    recordings = [*map(summary, opened.recordings)]
    return {"recordings": recordings, "run": opened.run, "received": opened.received, "message": None}


class PasteResultJson(AddedRunJson):
    """The recordings that a pasted text describes."""

    explanation: list[str]
    """The failure in sentences."""


@endpoint("paste", UPLOADS, BODY, post=True)
def paste(uploads: Uploading, text: bytes) -> PasteResultJson:
    """Add the text of an error as a run. `message` is the reason why it is not one, which the page shows."""
    try:
        run, recordings = uploads.paste(text)
    except InputError as error:
        return {"recordings": [], "run": "", "explanation": [], "message": str(error)}
    shown = [*map(summary, recordings)]
    return {"recordings": shown, "run": run, "explanation": sentences(recordings[0]), "message": None}
