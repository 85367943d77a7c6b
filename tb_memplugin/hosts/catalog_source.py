"""A catalog as the source of recordings that endpoints answer about."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tb_memplugin.catalog import Catalog
from tb_memplugin.catalog.quick import before_reading
from tb_memplugin.catalog.stages import skipped_text
from tb_memplugin.hosts.fleet_scans import FleetScans
from tb_memplugin.hosts.many_hosts import first_hosts, is_read_by_host, left_out_text
from tb_memplugin.model.fleet_trend import TrendBy
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.source_code import CodeLines
from tb_memplugin.source_files import SourceFiles
from tb_memplugin.views.endpoints.source import (
    FitOutcomes,
    FleetReading,
    OpenedFile,
    RunHosts,
    RunRecordings,
    TrendReading,
    Unreadable,
)


class CatalogSource:
    """Implements views.endpoints.source.Source."""

    def __init__(self, catalog: Catalog, files: SourceFiles | None = None) -> None:
        self._catalog = catalog
        self._files = files or SourceFiles()
        self._fleets = FleetScans(catalog)

    @property
    def logdir(self) -> str:
        return self._catalog.logdir

    def runs(self) -> list[RunHosts]:
        runs = self._catalog.runs()
        sessions = self._fleets.sessions(runs)
        return [
            RunHosts(
                run.name,
                list(dict.fromkeys(file.host for file in run.files)),
                run.modified_ns or None,
                self._catalog.peak_bytes(run),
                is_read_by_host(run),
                sessions.get(run.name, 1),
            )
            for run in runs
        ]

    def run(self, name: str, host: str | None = None) -> RunRecordings:
        run = self._catalog.run(name)
        is_part = host is None and is_read_by_host(run)
        listing = self._catalog.listing_of_run(first_hosts(run) if is_part else run, host)
        problems = [Unreadable(problem.file, problem.text) for problem in listing.problems]
        notes = [left_out_text(run)] if is_part else []
        notes += [left_out.text for left_out in listing.left_out]
        notes += filter(None, (skipped_text(listing.stages), self._catalog.dropped_text(name)))
        empty = {host: reason._asdict() for host, reason in listing.no_events.items()}
        fleet = self._fleets.has_fleet(run, listing.recordings)
        return RunRecordings(listing.recordings, problems, empty, bool(listing.left_out), notes, fleet)

    def recording(self, recording_id: str) -> Recording:
        return self._catalog.recording(recording_id)

    def file_of(self, recording_id: str) -> Sequence[Recording]:
        return self._catalog.recordings_of_file(recording_id)

    def run_of(self, recording: Recording) -> Sequence[Recording]:
        return self._catalog.listing(recording.run).recordings

    def programs(self, modules: Collection[str]) -> Sequence[Recording]:
        return self._catalog.programs(modules)

    def fit(self) -> FitOutcomes:
        found = self._catalog.fit()
        return FitOutcomes(found.outcomes, [Unreadable(problem.file, problem.text) for problem in found.problems])

    def fleet(self, capture: str) -> FleetReading:
        return self._fleets.fleet(capture)

    def fleet_trend(self, by: TrendBy) -> TrendReading:
        return self._fleets.trend(by)

    def code(self, file: str, line: int) -> CodeLines | None:
        before_reading()
        return self._files.around(file, line)

    def progress(self, run: str) -> tuple[int, int, float]:
        return self._catalog.progress.of(run)

    def paste(self, text: bytes) -> tuple[str, Sequence[Recording]]:
        pasted = self._catalog.pasted.add(text)
        return pasted.run.name, pasted.recordings

    def open_file(self, key: str, name: str, size: int, at: int, piece: bytes) -> OpenedFile:
        received, content = self._catalog.uploads.add(key, name, size, at, piece)
        if content is None:
            return OpenedFile(received)
        pasted = self._catalog.pasted.add_file(name, content)
        return OpenedFile(received, pasted.run.name, pasted.recordings)
