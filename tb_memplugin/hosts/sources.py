"""Sources of recordings that endpoints answer about: a catalog, and any source with an assumed capacity.

Of a run of many hosts, a catalog reads one host at a time. The capacity is one that a user assumes, for main memories
whose profile records none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.dumps import skipped_text
from tb_memplugin.fleet.sessions import host_count, hosts_of
from tb_memplugin.hosts.answer_cache import with_calls
from tb_memplugin.hosts.fleet_scans import FleetScans
from tb_memplugin.logdir import Run, is_remote
from tb_memplugin.model.recording import LazyRecording, Recording
from tb_memplugin.questions.asking.source import FitOutcomes, OpenedFile, RunJson, RunRecordings, Source
from tb_memplugin.source_files import SourceFiles

# A run above both limits is read host by host. An overview of 1,000 files of 0.9 MB takes 70 s, and one of 64 MiB of
# such files 5 s. Snapshots that one process saved in a loop are smaller: 1,000 of them take 3 s. The second limit does
# not apply to remote stores, where each file takes about ten requests.
MANY_HOSTS, MANY_BYTES = 16, 64 << 20


def is_read_by_host(run: Run) -> bool:
    """Return whether a run is read host by host, by its names and sizes."""
    is_many = len(hosts_of(run)) > MANY_HOSTS
    return is_many and (is_remote(run.root) or sum(file.size for file in run.files) > MANY_BYTES)


def catalog_source(catalog: Catalog, files: SourceFiles | None = None) -> Source:
    """Return the source of a server: the recordings of a catalog are its own, and the other parts are made for it."""
    fleets = FleetScans(catalog)
    parts = CatalogRuns(catalog, fleets), fleets, CatalogUploads(catalog), files or SourceFiles(), catalog.progress
    return Source(catalog, *parts)


class CatalogRuns:
    """The runs of a catalog, for the lists of the page. Implements questions.asking.source.Runs."""

    def __init__(self, catalog: Catalog, fleets: FleetScans) -> None:
        self._catalog = catalog
        self._fleets = fleets
        self.logdir = catalog.logdir

    def runs(self) -> list[RunJson]:
        runs = self._catalog.runs()
        sessions = self._fleets.sessions(runs)
        return [
            {
                "name": run.name,
                "hosts": list(dict.fromkeys(file.host for file in run.files)),
                "host_count": host_count(run),
                "modified_ns": run.modified_ns or None,
                "peak_bytes": self._catalog.peak_bytes(run),
                "by_host": is_read_by_host(run),
                "sessions": sessions.get(run.name, 1),
            }
            for run in runs
        ]

    def run(self, name: str, host: str | None = None) -> RunRecordings:
        run = read = self._catalog.run(name)
        notes = []
        if host is None and is_read_by_host(run):
            hosts = hosts_of(run)
            first = set(hosts[:MANY_HOSTS])
            read = run._replace(files=tuple(file for file in run.files if file.host in first))
            notes.append(
                f"Only the first {MANY_HOSTS} of {len(hosts):,} hosts are read here, as reading all takes long. "
                "The Fleet tab finds the worst device of all."
            )
        listing = self._catalog.listing_of_run(read, host)
        notes += [left_out.text for left_out in listing.left_out]
        further = skipped_text(listing.stages), self._catalog.dropped_text(name), self._catalog.links_text
        notes += filter(None, further)
        parts = listing.recordings, listing.problems, listing.no_events, bool(listing.left_out)
        return RunRecordings(*parts, notes, self._fleets.has_fleet(run, listing.recordings))

    def fit(self) -> FitOutcomes:
        found = self._catalog.fit()
        return FitOutcomes(found.outcomes, found.problems)


class CatalogUploads:
    """Pasted texts and dropped files, which a catalog keeps. Implements questions.asking.source.Uploading."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def paste(self, text: bytes) -> tuple[str, Sequence[Recording]]:
        pasted = self._catalog.pasted.add(text)
        return pasted.run.name, pasted.recordings

    def open_file(self, key: str, name: str, size: int, at: int, piece: bytes) -> OpenedFile:
        received, content, skipped = self._catalog.uploads.add(key, name, size, at, piece)
        if content is None:
            return OpenedFile(received)
        pasted = self._catalog.pasted.add_file(name, content, skipped)
        return OpenedFile(received, pasted.run.name, pasted.recordings)


CAPACITY_PARAMETER = "capacity"
MAX_CAPACITY = 1 << 50


def assume(recording: Recording, capacity: int) -> Recording:
    """Return the recording with an assumed capacity, where it is of a main memory that has none.

    The recording keeps the last such copy, and the copy its analyses, so that caches count and drop both together.
    """
    if recording.capacity or not recording.is_main_memory:
        return recording
    kept: Recording | None = recording.memo.get(assume)
    if kept is None or kept.capacity != capacity:
        outline = replace(recording.outline, capacity=capacity, capacity_source="assumed")
        kept = outline if recording.outline is recording else LazyRecording.of(outline, recording.load)
        recording.memo[assume] = kept
    return kept


def with_capacity(source: Source, capacity: int) -> Source:
    """Return a source whose main memories have an assumed capacity where they have none."""

    def assumed(value: Any) -> Any:
        if isinstance(value, Recording):
            return assume(value, capacity)
        if isinstance(value, RunRecordings):
            return value._replace(recordings=assumed(value.recordings))
        return [*map(assumed, value)] if isinstance(value, list) else value

    return with_calls(source, lambda part, method, *arguments: assumed(getattr(part, method)(*arguments)))
