"""Memoization of functions of a Recording, for the Recording's lifetime."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from tb_memplugin.model.recording import Recording

T = TypeVar("T")


def memoize(function: Callable[[Recording], T]) -> Callable[[Recording], T]:
    """Cache a function's result per Recording. Recordings never change; a result is dropped with its Recording."""
    results: WeakKeyDictionary[Recording, T] = WeakKeyDictionary()

    @wraps(function)
    def memoized(recording: Recording) -> T:
        try:
            return results[recording]
        except KeyError:
            result = results[recording] = function(recording)
            return result

    return memoized


def memoize_outline(function: Callable[[Recording], T]) -> Callable[[Recording], T]:
    """Call a function with the recording's outline, and cache its result. For what needs no names, stacks or spans."""
    memoized = memoize(function)
    return wraps(function)(lambda recording: memoized(recording.outline))
