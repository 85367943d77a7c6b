"""A capacity that a user assumes, for main memories whose profile records none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tb_memplugin.model.fleet_trend import TrendBy
from tb_memplugin.model.lazy_recording import LazyRecording
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

PARAMETER = "capacity"
MAX_CAPACITY = 1 << 50


def assume(recording: Recording, capacity: int) -> Recording:
    """Return the recording with an assumed capacity, where it is of a main memory that has none.

    The recording keeps the last one, with the analyses that were made of it, so that caches count and drop it.
    """
    if recording.capacity or not recording.is_main_memory:
        return recording
    kept: Recording | None = recording.memo.get(assume)
    if kept is None or kept.capacity != capacity:
        outline = replace(recording.outline, capacity=capacity, capacity_source="assumed")
        kept = outline if recording.outline is recording else LazyRecording.of(outline, recording.load)
        recording.memo[assume] = kept
    return kept


@dataclass(frozen=True, slots=True)
class AssumedCapacity:
    """Implements views.endpoints.source.Source with the recordings of another source."""

    source: Source
    capacity: int

    @property
    def logdir(self) -> str:
        return self.source.logdir

    def runs(self) -> Sequence[RunHosts]:
        return self.source.runs()

    def run(self, name: str, host: str | None = None) -> RunRecordings:
        found = self.source.run(name, host)
        return found._replace(recordings=self._all(found.recordings))

    def recording(self, recording_id: str) -> Recording:
        return assume(self.source.recording(recording_id), self.capacity)

    def file_of(self, recording_id: str) -> Sequence[Recording]:
        return self._all(self.source.file_of(recording_id))

    def run_of(self, recording: Recording) -> Sequence[Recording]:
        return self._all(self.source.run_of(recording))

    def programs(self, modules: Collection[str]) -> Sequence[Recording]:
        return self._all(self.source.programs(modules))

    def fit(self) -> FitOutcomes:
        return self.source.fit()

    def code(self, file: str, line: int) -> CodeLines | None:
        return self.source.code(file, line)

    def fleet(self, capture: str) -> FleetReading:
        return self.source.fleet(capture)

    def fleet_trend(self, by: TrendBy) -> TrendReading:
        return self.source.fleet_trend(by)

    def progress(self, run: str) -> tuple[int, int, float]:
        return self.source.progress(run)

    def paste(self, text: bytes) -> tuple[str, Sequence[Recording]]:
        return self.source.paste(text)

    def open_file(self, key: str, name: str, size: int, at: int, piece: bytes) -> OpenedFile:
        return self.source.open_file(key, name, size, at, piece)

    def _all(self, recordings: Sequence[Recording]) -> list[Recording]:
        return [assume(recording, self.capacity) for recording in recordings]
