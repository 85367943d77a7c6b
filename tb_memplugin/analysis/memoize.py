"""Memoization of functions of a Recording, for the Recording's lifetime."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

from tb_memplugin.model.recording import Recording

T = TypeVar("T")


def memoize(function: Callable[[Recording], T]) -> Callable[[Recording], T]:
    """Cache a function's result in each Recording. Recordings never change; a failure is not cached."""

    @wraps(function)
    def memoized(recording: Recording) -> T:
        try:
            return cast(T, recording.memo[function])
        except KeyError:
            result = recording.memo[function] = function(recording)
            return result

    return memoized


def memoize_outline(function: Callable[[Recording], T]) -> Callable[[Recording], T]:
    """Call a function with the recording's outline, and cache its result. For what needs no names, stacks or spans."""
    memoized = memoize(function)
    return wraps(function)(lambda recording: memoized(recording.outline))
