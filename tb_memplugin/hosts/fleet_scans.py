"""Scans of fleets for the page. Each scan runs in a thread of its own, and its findings can be read at any time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.executors import LocalProcesses
from tb_memplugin.fleet import series
from tb_memplugin.fleet.cache import SummaryCache
from tb_memplugin.fleet.scan import Scan, fleet_of, has_several, known_captures
from tb_memplugin.fleet.sessions import Capture, captures, hosts_of, rule_text
from tb_memplugin.fleet.summarize import with_programs
from tb_memplugin.fleet.tasks import problem_text
from tb_memplugin.fleet.trend import trend
from tb_memplugin.logdir import Run
from tb_memplugin.model.fleet import FileSummary, Fleet, KnownCapture, TrendSeries
from tb_memplugin.model.kinds import TrendBy
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.source import CaptureNameJson, FleetReading, TrendReading
from tb_memplugin.questions.fleet.words import faults_text
from tb_memplugin.questions.records import record

logger = logging.getLogger(__name__)
T = TypeVar("T")
K = TypeVar("K", Capture, tuple[TrendBy, tuple[Capture, ...]])
MAX_KEPT = 4  # scans of each kind; beyond it, the oldest ones that have ended are dropped
PUBLISH_SECONDS = 1.0  # between fleets of what has been read so far
FRESH_SECONDS = 5.0  # until the logdir is searched for captures again


class ScanThread(Generic[T]):
    """A scan in a thread of its own. `latest` is what it has found so far."""

    def __init__(self, run: Callable[[ScanThread[T], Scan], T]) -> None:
        self.latest: T | None = None
        self.done = self.total = 0
        self.problem = ""
        self.begun = time.monotonic()
        self._run = run
        self._ended_at: float | None = None
        threading.Thread(target=self._work, name="fleet", daemon=True).start()

    @property
    def seconds(self) -> float:
        return (self._ended_at or time.monotonic()) - self.begun

    @property
    def is_running(self) -> bool:
        return self._ended_at is None

    def count(self, done: int, total: int) -> None:
        """Take the number of files that are read."""
        self.done, self.total = done, total

    def _work(self) -> None:
        processes = LocalProcesses()
        try:
            self.latest = self._run(self, Scan(lambda: processes, SummaryCache()))
        except Exception as error:
            logger.warning("Reading a fleet", exc_info=error)
            self.problem = problem_text(error)
        finally:
            processes.stop()
            self._ended_at = time.monotonic()


class FleetScans:
    """The captures of a catalog. Methods may be called from any thread."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._found: list[Capture] = []
        # Captures in JSON, made of these captures after these scans had ended (by id), each of which may add faults.
        self._names: tuple[list[Capture], set[int], list[CaptureNameJson]] = ([], set(), [])
        self._searched = float("-inf")
        self._fleets: dict[Capture, ScanThread[Fleet]] = {}
        self._trends: dict[tuple[TrendBy, tuple[Capture, ...]], ScanThread[list[TrendSeries]]] = {}

    def fleet(self, name: str) -> FleetReading:
        """Return the part of a capture that has been read; start reading it.

        The name is that of the capture or of any of its sessions. Empty, it is the newest capture.
        """
        found = self._captures()
        chosen = next((c for c in found if not name or any(name == session.name for session in c.sessions)), None)
        if chosen is None:
            raise InputError("Unknown capture", name, "choose one that api/fleet lists")
        scan = self._started(self._fleets, chosen, lambda thread, scan: _read(chosen, thread, scan))
        by_name = dict.fromkeys(host for run in chosen.runs for host in hosts_of(run))
        hosts = list(scan.latest.hosts if scan.latest and not scan.is_running else by_name)
        progress = scan.done, scan.total or len(chosen.files), scan.seconds, scan.is_running
        return FleetReading(self._named(found), rule_text(), series.RULE, hosts, scan.latest, *progress, scan.problem)

    def trend(self, by: TrendBy) -> TrendReading:
        """Return the trend over all captures, once they are read."""
        found = tuple(self._captures())
        scan = self._started(self._trends, (by, found), lambda thread, scan: trend(found, scan, thread.count, by))
        return TrendReading(scan.latest or (), scan.done, scan.total, scan.seconds, scan.is_running, scan.problem)

    def sessions(self, runs: Iterable[Run]) -> dict[str, int]:
        """Return the number of sessions in the capture of each run."""
        found = captures(self._without_pasted(runs))
        return {run.name: len(capture.sessions) for capture in found for run in capture.runs}

    def has_fleet(self, run: Run, recordings: Iterable[Recording]) -> bool:
        """Return whether a run, of which these recordings are read, is of several hosts or devices."""
        return any(has_several(each, recordings) for each in self._without_pasted([run]))

    def _without_pasted(self, runs: Iterable[Run]) -> list[Run]:
        """Return the runs of the logdir."""
        pasted = {run.name for run in self._catalog.pasted.runs()}
        return [run for run in runs if run.name not in pasted]

    def _captures(self) -> list[Capture]:
        with self._lock:
            if time.monotonic() - self._searched < FRESH_SECONDS:
                return self._found
        found = captures(self._without_pasted(self._catalog.runs()))
        if not found:
            raise InputError("No capture", self._catalog.logdir, "pasted texts are not compared")
        with self._lock:
            self._found, self._searched = found, time.monotonic()
        return found

    def _named(self, found: list[Capture]) -> list[CaptureNameJson]:
        """Return the captures with their known faults, which change whenever a scan ends."""
        with self._lock:
            scans: list[ScanThread[Any]] = [*self._fleets.values(), *self._trends.values()]
            ended = {id(scan) for scan in scans if not scan.is_running}
            if self._names[:2] == (found, ended):
                return self._names[2]
        names = list(map(_name, known_captures(found, SummaryCache())))
        with self._lock:
            self._names = found, ended, names
        return names

    def _started(self, scans: dict[K, ScanThread[T]], key: K, run: Callable[[ScanThread[T], Scan], T]) -> ScanThread[T]:
        """Return the scan with a key, which contains the files, so that changed files are read again."""
        with self._lock:
            scan = scans.pop(key, None)
            scan = ScanThread(run) if scan is None or scan.problem else scan
            scans[key] = scan  # at the end: the oldest requests come first
            for old in [old for old, other in scans.items() if not other.is_running][: len(scans) - MAX_KEPT]:
                del scans[old]
        return scan


def _read(capture: Capture, thread: ScanThread[Fleet], scan: Scan) -> Fleet:
    """Read a capture. Publish what has been read so far from time to time."""
    files = capture.files
    found: list[FileSummary] = []
    published = time.monotonic()
    for summary in scan.summaries(files):
        found.append(summary)
        thread.count(len(found), len(files))
        if time.monotonic() - published > PUBLISH_SECONDS:
            thread.latest = fleet_of(capture, with_programs(found, scan.programs), is_complete=False)
            published = time.monotonic()
    return scan.complete([capture], found)[0]


def _name(known: KnownCapture) -> CaptureNameJson:
    return record(
        CaptureNameJson,
        known,
        known.fleet,
        sessions=len(known.fleet.sessions),
        hosts=len(known.hosts),
        known_files=len(known.fleet.files),
        faults=faults_text(known),
    )
