"""The exceptions whose messages are meant for users."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class InputError(Exception):
    """A mistake in the input or the call: `what` happened, `where` (a file or a parameter), and the `remedy`.

    Every host prints it as one line. Any other exception is a bug.
    """

    def __init__(self, what: str, where: str, remedy: str) -> None:
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}: {self.where}: {self.remedy}"


class NoBufferAssignmentError(InputError):
    """A `module` at a stage of its compilation that has no buffer assignment: another file may have one."""

    def __init__(self, where: str, module: str) -> None:
        what, remedy = "the program has no buffer assignment", "dump or profile the program after compilation"
        super().__init__(what, where, remedy)
        self.module = module


class ReadError(InputError):
    """A failure that the file's content did not cause: of the disk, permissions, the network or free memory.

    The same file may be readable a moment later, so this answer must not be cached.
    """


FAILURES = logging.getLogger("tb_memplugin.failures")  # commands disable it, and print a line for each failure


def log_failure(text: str, *values: object, error: BaseException) -> None:
    """Log a failure that was not foreseen with its traceback, and one of the input without."""
    FAILURES.warning(text, *values, exc_info=None if isinstance(error, InputError) else error)


class Abandoned(BaseException):
    """Nobody waits any longer for what is being read. It is no error of a file, so nothing may keep or report it."""


_is_abandoned: ContextVar[Callable[[], bool]] = ContextVar("is_abandoned", default=bool)  # bool() is False


@contextmanager
def abandoned_when(is_abandoned: Callable[[], bool]) -> Iterator[None]:
    """Let readers that are called in the block raise Abandoned once this is true."""
    before = _is_abandoned.set(is_abandoned)
    try:
        yield
    finally:
        _is_abandoned.reset(before)


def end_if_abandoned() -> None:
    """Raise Abandoned if nobody waits any longer."""
    if _is_abandoned.get()():
        raise Abandoned
