"""Work out a thing about a Recording once, for as long as the Recording is held."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from tb_memplugin.model.recording import Recording

T = TypeVar("T")


def memoize(question: Callable[[Recording], T]) -> Callable[[Recording], T]:
    """Remember answers per Recording, which never change; they are dropped with it."""
    answers: WeakKeyDictionary[Recording, T] = WeakKeyDictionary()

    @wraps(question)
    def ask(recording: Recording) -> T:
        try:
            return answers[recording]
        except KeyError:
            answer = answers[recording] = question(recording)
            return answer

    return ask
