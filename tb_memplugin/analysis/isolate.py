"""Isolation of failures: a recording on which an analysis fails becomes a problem beside the other answers."""

import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from tb_memplugin.errors import InputError, ReadError, log_failure
from tb_memplugin.model.recording import Recording

T = TypeVar("T")
# These errors may pass, so the whole answer fails: no answer without the recording is cached.
PASSING = (MemoryError, ReadError)


class Failed(NamedTuple):
    """A recording that could not be analyzed: its file, and a line about the error, listed beside unreadable files."""

    file: str
    text: str


def each(recordings: Sequence[Recording], function: Callable[[Recording], T]) -> tuple[list[T], list[Failed]]:
    """Call a function with each recording. Return its results, and a problem for each recording on which it fails."""
    results, failed = list[T](), list[Failed]()
    for recording in recordings:
        try:
            results.append(function(recording))
        except PASSING:
            raise
        except Exception as error:
            failed.append(failure(recording, error))
    return results, failed


def usable(
    recordings: Sequence[Recording], function: Callable[[Sequence[Recording]], object]
) -> tuple[Sequence[Recording], list[Failed]]:
    """Return the recordings for a function of several: all, unless it fails, then those on which alone it succeeds."""
    try:
        function(recordings)
    except InputError:
        raise
    except Exception:
        return each(recordings, lambda recording: (function([recording]), recording)[1])
    return recordings, []


def failure(recording: Recording, error: Exception) -> Failed:
    """Describe an error in one line. Log an unexpected one with its traceback, once for each recording."""
    about = f"{recording.title}, {recording.memory}" if recording.memory else recording.title
    if isinstance(error, InputError):
        return Failed(recording.source, f"{about}: {error.what}: {error.remedy}")
    innermost = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f"{frame.filename}:{frame.lineno}" for frame in innermost)
    logged = recording.memo.setdefault(failure, set())
    if place not in logged:
        logged.add(place)
        log_failure("Analyzing %s of %s", recording.id, recording.source, error=error)
    reason = f"{type(error).__name__}: {error}"
    return Failed(recording.source, f"{about}: cannot be analyzed ({reason}); other recordings are complete")
