"""Errors of a user's code: one line, and the traceback without the frames of this package."""

from __future__ import annotations

import traceback
from pathlib import Path

from tb_memplugin.fit.cache.inputs import installed_folders

MAX_LINE = 500
OWN = str(Path(__file__).parent.parent)
HIDDEN = (OWN, "<frozen importlib", "<frozen runpy")


def error_line(error: BaseException) -> str:
    """Return one line about an error: its kind, the first line of its message, and where the user's code raised it."""
    message = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    users = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    place = f" ({Path(users[-1].filename).name}:{users[-1].lineno})" if users else ""
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()) if note.startswith("The step "))
    return f"{type(error).__name__}: {message}"[:MAX_LINE] + place + notes


def user_traceback(error: BaseException) -> str:
    """Return the traceback as Python prints it, without the frames of this package; nothing without user's code."""
    formatted = traceback.TracebackException.from_exception(error)
    has_users = False
    waiting: list[traceback.TracebackException | None] = [formatted]
    while waiting:
        one = waiting.pop()
        if one is not None:
            kept = [frame for frame in one.stack if not _is_hidden(frame.filename)]
            first = next((number for number, frame in enumerate(kept) if _is_users(frame.filename)), None)
            kept, has_users = kept[first or 0 :], has_users or first is not None  # not jax's own before the user's
            one.stack = traceback.StackSummary.from_list(kept)
            waiting += [one.__cause__, one.__context__, *(one.exceptions or ())]
    return "".join(formatted.format()) if has_users or isinstance(error, SyntaxError) else ""


def _is_users(filename: str) -> bool:
    return not _is_hidden(filename) and not filename.startswith(installed_folders())


def _is_hidden(filename: str) -> bool:
    return filename.startswith(HIDDEN)
