"""The runs of a logdir and their recordings, how much of a run has been read, and runs that the page adds.

The page adds files that are opened in the browser, and texts of errors that are pasted.
"""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.errors import InputError
from tb_memplugin.questions.asking.endpoint import EACH_CHOICE, endpoint
from tb_memplugin.questions.asking.inputs import BODY, PROGRESS, RUN, RUNS, UPLOADS, FreeText, Integer
from tb_memplugin.questions.asking.json_types import ProblemJson, SummaryJson, problems_json
from tb_memplugin.questions.asking.source import ReadingProgress, RunJson, Runs, Uploading
from tb_memplugin.questions.oom.failure import sentences
from tb_memplugin.questions.recording.summary import summaries, summary
from tb_memplugin.questions.records import record
from tb_memplugin.questions.run.order import opening


class RunsJson(TypedDict):
    """All runs of a logdir, newest first."""

    logdir: str
    runs: list[RunJson]
    message: str | None
    """The reason for having no runs, with a remedy; null with runs."""


class ReasonJson(TypedDict):
    """The reason why something is missing, and what to do about it. `code` is for programs."""

    code: str
    text: str
    remedy: str


class ListingJson(TypedDict):
    """The recordings of a run, largest peak first, and the files and recordings that cannot be shown."""

    recordings: list[SummaryJson]
    problems: list[ProblemJson]
    empty: dict[str, ReasonJson]
    """By host: why it has no recording over time. Empty where any host has one."""
    notes: list[str]
    """Sentences about what is not listed, without being a problem."""
    opens: str | None
    """The id of the recording that uses the largest share of its limit; null where that is not clear."""
    has_fleet: bool
    """True: the run is of several hosts, or of several devices with memory of one kind."""


@endpoint("runs", RUNS, report=EACH_CHOICE)
def runs(logdir: Runs) -> RunsJson:
    """Return all runs. For an empty logdir, `message` is the reason."""
    try:
        return {"logdir": logdir.logdir, "runs": list(logdir.runs()), "message": None}
    except InputError as error:
        return {"logdir": logdir.logdir, "runs": [], "message": str(error)}


@endpoint("recordings", RUNS, RUN, FreeText("host", default=""), report=EACH_CHOICE)
def recordings(logdir: Runs, run: str, host: str) -> ListingJson:
    """Return the recordings of a run, or of one host of it, and what could not be read."""
    found = logdir.run(run, host or None)
    shown, failed = summaries(found.recordings)
    return {
        "recordings": shown,
        "problems": [*problems_json(found.problems), *failed],
        "empty": {host: record(ReasonJson, reason) for host, reason in found.empty.items()},
        "notes": list(found.notes),
        "opens": opening(found.recordings),
        "has_fleet": found.has_fleet,
    }


class ProgressJson(TypedDict):
    """Bytes read of all files of a run, and the seconds since the reading began; all 0 unless files are being read."""

    read_bytes: int
    total_bytes: int
    seconds: float


@endpoint("progress", PROGRESS, RUN, live=True)
def progress(reading: ReadingProgress, run: str) -> ProgressJson:
    """Return how many bytes of a run's files are read. Answered at once, while other requests wait for the files."""
    read, total, seconds = reading.of(run)
    return {"read_bytes": read, "total_bytes": total, "seconds": seconds}


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
