"""Finished answers, kept so that a repeated GET costs no analysis, encoding, hashing or compression.

An endpoint reads nothing but its parameters and its source. So an answer is still right if the source returns the same
as when the answer was made. Recordings never change and are compared by identity; everything else is compared by value.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple
from weakref import ref

from tb_memplugin.catalog.quick import WouldReadError, without_reading
from tb_memplugin.hosts.responses import Finished
from tb_memplugin.hosts.serving.lanes import PostponedError
from tb_memplugin.model.fleet_trend import TrendBy
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.source_code import CodeLines
from tb_memplugin.views.endpoints.source import (
    FitOutcomes,
    FleetReading,
    OpenedFile,
    RunHosts,
    RunRecordings,
    Source,
    TrendReading,
)

MAX_BYTES = 128 << 20
MAX_SHARE = 4  # a larger part of the cache than a quarter would evict too many others
OVERHEAD_BYTES = 2 << 10  # of an answer without its body

MIN_SWEPT = 100  # answers; more are searched for those about recordings that no longer exist

AnswerKey = tuple[str, ...]


class _Seen(NamedTuple):
    """One question to the source, and what it returned, without keeping recordings alive."""

    method: str
    arguments: tuple[Any, ...]
    returned: Any


class RecordedSource:
    """A source that remembers what it was asked and what it returned. Implements views.endpoints.source.Source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.seen: list[_Seen] = []

    @property
    def logdir(self) -> str:
        return self._source.logdir

    def runs(self) -> Sequence[RunHosts]:
        found: Sequence[RunHosts] = self._ask("runs")
        return found

    def run(self, name: str, host: str | None = None) -> RunRecordings:
        found: RunRecordings = self._ask("run", name, host)
        return found

    def recording(self, recording_id: str) -> Recording:
        found: Recording = self._ask("recording", recording_id)
        return found

    def file_of(self, recording_id: str) -> Sequence[Recording]:
        found: Sequence[Recording] = self._ask("file_of", recording_id)
        return found

    def run_of(self, recording: Recording) -> Sequence[Recording]:
        found: Sequence[Recording] = self._ask("run_of", recording)
        return found

    def programs(self, modules: Collection[str]) -> Sequence[Recording]:
        found: Sequence[Recording] = self._ask("programs", modules)
        return found

    def fit(self) -> FitOutcomes:
        found: FitOutcomes = self._ask("fit")
        return found

    def code(self, file: str, line: int) -> CodeLines | None:
        found: CodeLines | None = self._ask("code", file, line)
        return found

    def fleet(self, capture: str) -> FleetReading:
        return self._source.fleet(capture)

    def fleet_trend(self, by: TrendBy) -> TrendReading:
        return self._source.fleet_trend(by)

    def progress(self, run: str) -> tuple[int, int, float]:
        return self._source.progress(run)

    def paste(self, text: bytes) -> tuple[str, Sequence[Recording]]:
        return self._source.paste(text)

    def open_file(self, key: str, name: str, size: int, at: int, piece: bytes) -> OpenedFile:
        return self._source.open_file(key, name, size, at, piece)

    def _ask(self, method: str, *arguments: Any) -> Any:
        returned = getattr(self._source, method)(*arguments)
        self.seen.append(_Seen(method, tuple(map(_weak, arguments)), _weak(returned)))
        return returned


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

    def is_right(self, source: Source) -> bool:
        """Return whether the source still returns what the answer was made of. Its errors are those of the answer."""
        for seen in self.seen:
            arguments = [_strong(argument) for argument in seen.arguments]
            if None in arguments and None not in seen.arguments:
                return False  # about a recording that no longer exists
            if _weak(getattr(source, seen.method)(*arguments)) != seen.returned:
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

    def answer_kept(self, key: AnswerKey, source: Source, may_search: bool) -> Finished:
        """Return the kept answer if it is still right, without reading a file. PostponedError where that is unknown."""
        try:
            with without_reading(may_search):
                found = self._find(key, source)
        except WouldReadError:
            found = None
        if found is None:
            raise PostponedError
        return found

    def answer(
        self, key: AnswerKey, source: Source, make: Callable[[Source], Finished], may_wait: bool = True
    ) -> Finished:
        """Return the kept answer if it is still right, or make it. Concurrent requests share one making of it.

        While another thread makes it, wait, or raise PostponedError.
        """
        while (found := self._find(key, source)) is None:
            with self._lock:
                other = self._making.get(key)
                if other is None:
                    mine = self._making[key] = Future[None]()
            if other is None:
                return self._make(key, source, make, mine)
            if not may_wait:
                raise PostponedError(other)
            other.result()
        return found

    def _make(self, key: AnswerKey, source: Source, make: Callable[[Source], Finished], mine: Future[None]) -> Finished:
        try:
            recorded = RecordedSource(source)
            finished = make(recorded)
            self._keep(key, _Kept(finished, recorded.seen))
            return finished
        finally:
            with self._lock:
                del self._making[key]
            mine.set_result(None)

    def _find(self, key: AnswerKey, source: Source) -> Finished | None:
        kept = self._kept.get(key)
        if kept is None or not kept.is_right(source):
            return None
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
        return kept.finished

    def _keep(self, key: AnswerKey, kept: _Kept) -> None:
        too_large = kept.finished.body_bytes > self._max_bytes // MAX_SHARE
        _ = too_large or kept.nbytes  # compresses it, which should not happen while others wait
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


def _strong(value: Any) -> Any:
    return value() if isinstance(value, ref) else value


def _has_dead(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_dead, value))
    return isinstance(value, ref) and value() is None
