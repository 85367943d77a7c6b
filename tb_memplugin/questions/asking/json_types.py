"""Types of JSON that several answers contain. Sizes are in bytes; None is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypedDict

from tb_memplugin.analysis.usage.figure_definitions import Figure
from tb_memplugin.model.caveats import Caveat


class CaveatJson(TypedDict):
    """A limitation of the file or of its reconstruction."""

    code: str
    text: str
    bytes: int | None


def caveat_json(caveat: Caveat) -> CaveatJson:
    return {"code": caveat.code, "text": caveat.text, "bytes": caveat.bytes}


class SummaryJson(TypedDict):
    """One recording in a list of recordings."""

    id: str
    kind: str
    title: str
    run: str
    host: str
    memory: str
    axis: str
    length: int
    """Positions of the axis."""
    time_ns: int | None
    """Time of the first position, since 1970; null where the file has none."""
    end_ns: int | None
    """Time of the last position of a recording over time, since 1970."""
    step: int | None
    """Training step of a snapshot, if the file has it."""
    allocations: int
    peak_bytes: int
    peak_position: int
    reserved_bytes: int | None
    reported_peak_bytes: int | None
    capacity_bytes: int | None
    capacity_source: str
    """Source of the capacity, such as the chip's name; empty: the recording itself, or unknown."""
    live: bool
    """The job that writes the file has not finished it: it runs, or was killed. False for other kinds than watch."""
    interval_ns: int | None
    """Time between samples; null for recordings that are not sampled."""
    reason: str | None
    """Reason for a snapshot, as in "90 % of capacity"; null where the script asked for it, and elsewhere."""
    caveats: list[CaveatJson]


class ProblemJson(TypedDict):
    """A file, or a part or a recording of one, that cannot be read or analyzed, and what to do about it."""

    file: str
    text: str


class LeftOutProgramsJson(TypedDict):
    """The programs of a large dump that a list leaves out, and the most bytes that one of them reserves."""

    programs: int
    bytes: int


OmittedJson = dict[str, int]  # by key, the items that a list would have without --top


class FigureJson(TypedDict):
    """A number of bytes with its label and a sentence that defines it."""

    key: str
    label: str
    bytes: int | None
    text: str


class OutOfMemoryJson(TypedDict):
    """An out-of-memory failure: the request, the memory that was free, and the cause."""

    asked_bytes: int | None
    free_bytes: int | None
    largest_free_bytes: int | None
    capacity_bytes: int | None
    in_use_bytes: int | None
    missing_bytes: int | None
    phase: str
    """Phase of the failure: "compile", "load" or "run". A compiler requests all memory of the program at once."""
    used_is: str
    """Meaning of the recording's bytes: "in use", or "needed" by a program that could not start."""
    reason: str
    wanted_by: str
    sentences: list[str]
    """The request, the cause, and then the hints."""


class StackFrameJson(TypedDict):
    """One frame of a call stack."""

    function: str
    file: str
    line: int


class SiteJson(TypedDict):
    """An allocation site, and the allocation that stands for it."""

    row: int
    site: str
    name: str
    op: str
    op_name: str
    shape: str
    dtype: str
    size: int | None
    stack: list[StackFrameJson]
    """The innermost frame comes first."""


class AboutFile(Protocol):
    """A problem of a file; readers, analyses and sources of recordings have types of their own."""

    @property
    def file(self) -> str: ...
    @property
    def text(self) -> str: ...


def problems_json(*lists: Iterable[AboutFile]) -> list[ProblemJson]:
    """Return lists of problems as one for JSON."""
    return [{"file": problem.file, "text": problem.text} for problems in lists for problem in problems]


def figure_json(figure: Figure) -> FigureJson:
    """Return a figure for JSON."""
    return {"key": figure.key, "label": figure.label, "bytes": figure.bytes, "text": figure.text}
