"""Finished answers, kept so that a repeated GET costs no analysis, encoding, hashing or compression.

An endpoint reads nothing but its parameters and its source. So an answer is still right if the source returns the same
as when the answer was made. Recordings never change and are compared by identity; everything else is compared by value.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

from tb_memplugin.hosts.http_messages import Finished
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.source import Source

MAX_BYTES = 128 << 20  # of all answers, with their compressed forms
MAX_SHARE = 4  # an answer of more than a quarter of the cache is not kept: it would evict too many others
OVERHEAD_BYTES = 2 << 10  # of an answer without its body
# With more answers than this, the cache is searched for answers about recordings that no longer exist.
MIN_SWEPT = 100

AnswerKey = tuple[str, ...]


class _Part:
    """A part of a source whose methods are called by a function, which gets part, method and arguments."""

    def __init__(self, part: Any, call: Callable[..., Any]) -> None:
        self._part = part
        self._call = call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if not callable(found):  # a fact that never changes, such as the logdir
            return found
        return partial(self._call, self._part, name)


def with_calls(source: Source, call: Callable[..., Any]) -> Source:
    """Return a source whose methods are called by `call(part, name of the method, *arguments)`."""
    return Source(*(_Part(part, call) for part in source))


class _Seen(NamedTuple):
    """A call of a method of a source, and its result. Recordings are weak references, so that none is kept alive."""

    part: Any
    method: str
    arguments: tuple[Any, ...]
    returned: Any


class _Kept(NamedTuple):
    finished: Finished
    seen: Sequence[_Seen]

    @property
    def nbytes(self) -> int:
        return self.finished.nbytes + OVERHEAD_BYTES

    @property
    def is_dead(self) -> bool:
        """Return whether the answer is about a recording that no longer exists."""
        return any(_has_dead((seen.arguments, seen.returned)) for seen in self.seen)

    def is_right(self) -> bool:
        """Return whether the source's methods still return the values that the answer was made of.

        An error of the source is raised: a new answer would fail with it, too.
        """
        for seen in self.seen:
            arguments = [argument() if isinstance(argument, ref) else argument for argument in seen.arguments]
            if None in arguments and None not in seen.arguments:
                return False  # about a recording that no longer exists
            if _weak(getattr(seen.part, seen.method)(*arguments)) != seen.returned:
                return False
        return True


class AnswerCache:
    """Finished answers by route and parameters, the latest used last. Methods may be called from any thread."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[AnswerKey, _Kept] = OrderedDict()
        self._making: dict[AnswerKey, Future[None]] = {}
        self._sweep_at = MIN_SWEPT

    def __contains__(self, key: AnswerKey) -> bool:
        return key in self._kept

    @property
    def nbytes(self) -> int:
        with self._lock:
            return sum(kept.nbytes for kept in self._kept.values())

    def making(self, key: AnswerKey) -> Future[None] | None:
        """Return a future that is done when another thread has made the answer; None where no thread makes it."""
        return self._making.get(key)

    def answer(self, key: AnswerKey, source: Source, make: Callable[[Source], Finished]) -> Finished:
        """Return the kept answer if it is still right, or make it. Concurrent requests share one making of it."""
        while (found := self._find(key)) is None:
            with self._lock:
                other = self._making.get(key)
                if other is None:
                    mine = self._making[key] = Future[None]()
            if other is None:
                return self._make(key, source, make, mine)
            other.result()
        return found

    def _make(self, key: AnswerKey, source: Source, make: Callable[[Source], Finished], mine: Future[None]) -> Finished:
        seen: list[_Seen] = []

        def call(part: Any, method: str, *arguments: Any) -> Any:
            returned = getattr(part, method)(*arguments)
            seen.append(_Seen(part, method, tuple(map(_weak, arguments)), _weak(returned)))
            return returned

        try:
            finished = make(with_calls(source, call))
            self._keep(key, _Kept(finished, seen))
            return finished
        finally:
            with self._lock:
                del self._making[key]
            mine.set_result(None)

    def _find(self, key: AnswerKey) -> Finished | None:
        kept = self._kept.get(key)
        if kept is None or not kept.is_right():
            return None
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
        return kept.finished

    def _keep(self, key: AnswerKey, kept: _Kept) -> None:
        too_large = len(kept.finished.body) > self._max_bytes // MAX_SHARE
        # The size includes the compressed form. It is made here, before other threads wait for the lock.
        _ = too_large or kept.nbytes
        with self._lock:
            self._kept.pop(key, None)
            if too_large:
                return
            self._kept[key] = kept
            if len(self._kept) > self._sweep_at:
                for dead in [other for other, each in self._kept.items() if each.is_dead]:
                    del self._kept[dead]
                self._sweep_at = max(MIN_SWEPT, 2 * len(self._kept))
            total = sum(each.nbytes for each in self._kept.values())
            while total > self._max_bytes:
                _, dropped = self._kept.popitem(last=False)
                total -= dropped.nbytes


def _weak(value: Any) -> Any:
    """Return a value with references in place of its recordings; two are equal if they have the same recordings."""
    if isinstance(value, Recording):
        return ref(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(_weak, value))
    return value


def _has_dead(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_dead, value))
    return isinstance(value, ref) and value() is None
