"""The failure of a question, for programs."""

from __future__ import annotations

from typing import Literal, TypedDict

from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.views.answers.asked import SCHEMA_VERSION
from tb_memplugin.views.answers.bounded import bounded

Kind = Literal["input", "read", "usage", "internal"]


class FailureJson(TypedDict):
    """What happened, where (a file, an option or a value), and what to do."""

    kind: Kind
    """`input`: a file or a value is wrong. `read`: the disk, the network or free memory, so it may work later.
    `usage`: the call is wrong. `internal`: any other failure."""
    what: str
    where: str
    remedy: str


class ErrorAnswerJson(TypedDict):
    """The answer to a question that failed."""

    schema_version: int
    error: FailureJson


def error_answer(error: Exception) -> ErrorAnswerJson:
    """Return the answer to a question that raised an error."""
    if isinstance(error, InputError):
        return failed("read" if isinstance(error, ReadError) else "input", error.what, error.where, error.remedy)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, MemoryError):
        return failed("read", "Not enough memory", "", "end other programs, or use a larger machine")
    if isinstance(error, OSError):
        return failed("read", what, str(error.filename or ""), "see --debug for the traceback")
    return failed("internal", what, "", "see --debug for the traceback, and report it")


def failed(kind: Kind, what: str, where: str, remedy: str) -> ErrorAnswerJson:
    """Return the answer to a question that failed."""
    failure: FailureJson = {"kind": kind, "what": what, "where": where, "remedy": remedy}
    answer: ErrorAnswerJson = {"schema_version": SCHEMA_VERSION, "error": failure}
    return bounded(answer, None)
