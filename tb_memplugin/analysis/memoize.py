"""Memoization of functions of a Recording, for the Recording's lifetime."""

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import TypeVar, cast

from tb_memplugin.model.recording import Recording

T = TypeVar("T")


def memoize(function: Callable[[Recording], T]) -> Callable[[Recording], T]:
    """Cache a function's result in each Recording. Recordings never change; a failure is not cached.

    Threads that need the same result at once share one computation of it.
    """

    @wraps(function)
    def memoized(recording: Recording) -> T:
        try:
            return cast(T, recording.memo[function])
        except KeyError:
            pass
        with recording.computing.setdefault(function, RLock()):
            try:
                return cast(T, recording.memo[function])  # another thread has computed it meanwhile
            except KeyError:
                result = recording.memo[function] = function(recording)
                return result

    return memoized


def memoize_outline(function: Callable[[Recording], T]) -> Callable[[Recording], T]:
    """Memoize a function that needs no names, stacks or spans: it is called with the recording's outline."""
    memoized = memoize(function)
    return wraps(function)(lambda recording: memoized(recording.outline))
