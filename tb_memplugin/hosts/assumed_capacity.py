"""A capacity that a user assumes, for main memories whose profile records none."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tb_memplugin.model.recording import Recording
from tb_memplugin.views.endpoints.source import CodeAround, FitOutcomes, OpenedFile, RunHosts, RunRecordings, Source

PARAMETER = "capacity"
MAX_CAPACITY = 1 << 50
MAX_KEPT = 256  # recordings, so that analyses of them are made once


class Assumed:
    """Recordings with the assumed capacity, the latest used last. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, int], tuple[Recording, Recording]] = OrderedDict()

    def recording(self, recording: Recording, capacity: int) -> Recording:
        if recording.capacity or not recording.is_main_memory:
            return recording
        key = id(recording), capacity
        with self._lock:
            original, assumed = self._kept.pop(key, (None, None))
            if assumed is None or original is not recording:
                assumed = replace(recording, capacity=capacity, capacity_source="assumed")
            self._kept[key] = recording, assumed
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return assumed


@dataclass(frozen=True, slots=True)
class AssumedCapacity:
    """Implements views.endpoints.source.Source with the recordings of another source."""

    source: Source
    capacity: int
    assumed: Assumed

    @property
    def logdir(self) -> str:
        return self.source.logdir

    def runs(self) -> Sequence[RunHosts]:
        return self.source.runs()

    def run(self, name: str, host: str | None = None) -> RunRecordings:
        found = self.source.run(name, host)
        return found._replace(recordings=self._all(found.recordings))

    def recording(self, recording_id: str) -> Recording:
        return self.assumed.recording(self.source.recording(recording_id), self.capacity)

    def file_of(self, recording_id: str) -> Sequence[Recording]:
        return self._all(self.source.file_of(recording_id))

    def run_of(self, recording: Recording) -> Sequence[Recording]:
        return self._all(self.source.run_of(recording))

    def programs(self, modules: Collection[str]) -> Sequence[Recording]:
        return self._all(self.source.programs(modules))

    def fit(self) -> FitOutcomes:
        return self.source.fit()

    def code(self, file: str, line: int) -> CodeAround | None:
        return self.source.code(file, line)

    def paste(self, text: bytes) -> tuple[str, Sequence[Recording]]:
        return self.source.paste(text)

    def open_file(self, key: str, name: str, size: int, at: int, piece: bytes) -> OpenedFile:
        return self.source.open_file(key, name, size, at, piece)

    def _all(self, recordings: Sequence[Recording]) -> list[Recording]:
        return [self.assumed.recording(recording, self.capacity) for recording in recordings]
