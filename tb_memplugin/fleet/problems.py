"""Problems of files, in a line each."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor

from tb_memplugin.errors import InputError, ReadError


def problem_text(error: object) -> str:
    """Describe an error in one line."""
    if isinstance(error, InputError):
        return f"{error.what}: {error.remedy}"
    if isinstance(error, MemoryError):
        return "not enough memory to read it: end other programs, or use fewer --jobs"
    if is_death(error):
        return "a process that read it has died: is there enough memory?"
    return f"cannot be read ({type(error).__name__}: {error}); is it damaged?"


def may_pass(error: BaseException) -> bool:
    """Return whether a file may be readable a moment later: its content is not the cause."""
    return isinstance(error, (ReadError, MemoryError, OSError, ImportError)) or is_death(error)


def is_death(error: object) -> bool:
    """Return whether processes died while they ran a task: one of this machine, or several of dask's workers."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"
