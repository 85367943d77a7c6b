"""The recordings of a logdir, for servers: each file is read once, and recordings are cached within a limit."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

from tb_memplugin import logdir, readers
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.catalog.dumps import MAX_PROGRAMS
from tb_memplugin.catalog.fit_records import FitRecords, read_records
from tb_memplugin.catalog.linking import chunk_programs, link_chunks, link_timelines
from tb_memplugin.catalog.listing import Listing, listing_of_files, merge, read_file
from tb_memplugin.catalog.listing_cache import FileVersion, ListingCache, file_version
from tb_memplugin.catalog.programs import files_of_modules, titled
from tb_memplugin.catalog.reading import Progress
from tb_memplugin.catalog.uploads import PastedTexts, Uploads
from tb_memplugin.errors import Abandoned, InputError, end_if_abandoned
from tb_memplugin.logdir import HostFile, Run
from tb_memplugin.model.recording import Recording

Result = TypeVar("Result")


class SharedCall(Generic[Result]):
    """Calls a function once for all who asked before the call began. Those who ask during a call share the next."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function = function
        self._running = threading.Lock()
        self._begun = 0  # number of calls
        self._ended: tuple[int, Result] | None = None  # the last call that succeeded, and its result

    def __call__(self) -> Result:
        wanted = self._begun + 1
        with self._running:
            if self._ended is not None and self._ended[0] >= wanted:
                return self._ended[1]
            self._begun += 1
            number = self._begun
            result = self._function()
            self._ended = (number, result)
            return result


# A program of 500,000 buffers takes about 100 MB, so the cache has room for those that a user switches between.
MAX_CACHE_BYTES = 1 << 30
# The page asks for runs and then for a fit's candidates: one search of the logdir answers both.
FRESH_SECONDS = 5
# A search that took longer answers as long again: the page asks several questions at once.
SLOW_SEARCH_SECONDS = 0.1
# Each may take several times its file. Answers about files that were read wait for none.
MAX_READERS = 4
TIMELINE = ".raw.json.gz"  # the format of PyTorch's memory timeline that has a category per allocation


class Catalog:
    """The recordings of one logdir, or of several. Methods may be called from any thread.

    Several logdirs are given as a mapping: names, which become prefixes of the names of runs, to paths.
    """

    def __init__(self, roots: str | Mapping[str, str], cache_bytes: int = MAX_CACHE_BYTES) -> None:
        self._roots = {"": roots} if isinstance(roots, str) else roots
        self.logdir = logdir.path_text(", ".join(self._roots.values()))  # for display
        self.pasted = PastedTexts()
        self.uploads = Uploads()
        self.progress = Progress()
        self._runs: list[Run] = []  # of the last search
        self._fits: list[Run] = []  # with the record of a fit's candidate
        self.links_text = ""  # about folders that the last search has not read
        self._searched = float("-inf")
        self._search_seconds = 0.0  # of the last search, if it was slow
        self._search = SharedCall(self._search_now)  # it reads every folder
        self._cache = ListingCache(cache_bytes)
        self._peaks: dict[str, tuple[tuple[HostFile, ...], int]] = {}  # by run: its files, and their largest peak
        self._lock = threading.Lock()
        self._reading: dict[FileVersion, Future[Listing]] = {}
        self._readers = threading.BoundedSemaphore(MAX_READERS)

    @staticmethod
    def load_readers() -> None:
        """Import all readers, and what they import on first use, so that a server's first request does not wait."""
        import numpy.ma  # noqa: F401 np.unique imports it

        readers.load_readers()

    def local_roots(self) -> list[str]:
        """Return the paths of the logdirs that are on this machine."""
        return [os.path.expanduser(root) for root in self._roots.values() if not logdir.is_remote(root)]

    def runs(self) -> list[Run]:
        """Return all runs, newest first, then the pasted texts. InputError if there are none."""
        if time.monotonic() - self._searched < self._search_seconds:
            return [*self._runs, *self.pasted.runs()]
        return self._search()

    def _search_now(self) -> list[Run]:
        began = time.monotonic()
        every: list[Run] = []
        links: list[str] = []
        errors: list[InputError] = []
        for name, root in self._roots.items():
            try:
                runs = logdir.find_all(root)
                links.append(logdir.links_text(root, runs))
                every += [run._replace(name=f"{name}/{run.name}") for run in runs] if name else runs
                if not any(run.files for run in runs):
                    errors.append(logdir.no_runs(root))
            except InputError as error:
                errors.append(error)
        every = logdir.newest_first(every)
        self._runs = found = [run for run in every if run.files]
        self._fits = [run for run in every if run.record is not None]
        self.links_text = " ".join(filter(None, links))
        self._searched = time.monotonic()
        took = self._searched - began
        self._search_seconds = took if found and took > SLOW_SEARCH_SECONDS else 0.0
        self._cache.keep_only({file.path for run in found for file in run.files})
        names = {run.name for run in found}
        self._peaks = {name: known for name, known in list(self._peaks.items()) if name in names}
        if found or self.pasted.runs():
            return [*found, *self.pasted.runs()]
        raise errors[0] if errors else InputError("No logdir", "--logdir", "start the server with a logdir")

    def fit(self) -> FitRecords:
        """Return the candidates of fits in the logdir, and the records that cannot be read."""
        if time.monotonic() - self._searched > FRESH_SECONDS:
            self._known_runs()
        return read_records(self._fits)

    def run(self, name: str) -> Run:
        """Return the run with a name, with its present files. InputError for an unknown one."""
        if not (matches := self.find(lambda candidate: candidate.name == name)):
            runs = self.runs()
            raise InputError("Unknown run", name, f"the newest of {len(runs):,} is {runs[0].name}")
        return matches[0]

    def listing(self, run: str, host: str | None = None) -> Listing:
        """List the recordings of a run, or of one host of it. InputError for an unknown run or host."""
        return self.listing_of_run(self.run(run), host)

    def listing_of_run(self, run: Run, host: str | None = None) -> Listing:
        """List the recordings of a run that `find` or `run` returned, or of one host. InputError for an unknown one."""
        files = [file for file in run.files if host in (None, file.host)]
        if not files:
            hosts = ", ".join(dict.fromkeys(file.host for file in run.files))
            raise InputError("Unknown host", str(host), f"the hosts of {run.name} are: {hosts}")
        with self.progress.files(run.name, files if len(files) <= MAX_PROGRAMS else ()):
            listing = listing_of_files(files, run.name, self._read_once)
        is_complete = host is None and not any(problem.may_pass for problem in listing.problems)
        if is_complete and listing.recordings:
            self._peaks[run.name] = run.files, max(peak(recording).bytes for recording in listing.recordings)
        if names := chunk_programs(listing.recordings):
            listing.recordings[:] = link_chunks(listing.recordings, self.programs(names))
        return listing

    def dropped_text(self, run: str) -> str:
        """Return a sentence about the files of a run that were dropped to save memory; empty where there are none."""
        paths = {file.path for known in self._runs if known.name == run for file in known.files}
        return self._cache.dropped_text(run, paths)

    def peak_bytes(self, run: Run) -> int | None:
        """Return the largest peak of a run whose files were read, and have not changed since; None for others."""
        files, largest = self._peaks.get(run.name, ((), 0))
        return largest if files and files == run.files else None

    def recording(self, recording_id: str) -> Recording:
        """Return the recording with an id. InputError where it does not exist, or no longer exists."""
        recordings = self.file_of(recording_id)
        return next(recording for recording in recordings if recording.id == recording_id)

    def file_of(self, recording_id: str) -> list[Recording]:
        """Return all recordings of the file that contains the recording with an id. InputError as for `recording`."""
        for run in self.find(lambda run: recording_id.startswith(f"{run.name}|")):
            for file in _files_of(run, recording_id):
                recordings = self._read_linked(file, run)
                if any(recording.id == recording_id for recording in recordings):
                    return recordings
        raise InputError("Unknown recording", recording_id, "choose one that api/recordings lists")

    def run_of(self, recording: Recording) -> list[Recording]:
        """Return all recordings of the run that contains this one."""
        return self.listing(recording.run).recordings

    def unread_bytes(self, name: str) -> int | None:
        """Return the bytes of the files that are not cached, of a run or of the file that contains a recording.

        `name` is that of the run, or the id of the recording. None where a search of the logdir would have to find it.
        """
        known = [
            run for run in (*self.pasted.runs(), *self._runs) if name == run.name or name.startswith(f"{run.name}|")
        ]
        # The folder of a remote run would have to be listed: that is a search, too.
        present = [run if not run.root else logdir.list_again(run) for run in known if not logdir.is_remote(run.root)]
        files = [(file, run.name) for run in present if run for file in _files_of(run, name)]
        if not files:
            return None
        unread = (
            file for file, run in files if not self.pasted.get(run) and file_version(file, run) not in self._cache
        )
        return sum(file.size for file in unread)

    def _read_linked(self, file: HostFile, run: Run) -> list[Recording]:
        """Return a file's recordings; snapshots are linked to the memory timelines of their run."""
        own = self._read_once(file, run.name).recordings
        if names := chunk_programs(own):
            return link_chunks(own, self.programs(names))
        if not any(recording.kind.has_tensor_stacks for recording in own):
            return own
        timelines = [other for other in run.files if other.path.endswith(TIMELINE)]
        others = [recording for other in timelines for recording in self._read_once(other, run.name).recordings]
        return link_timelines([*own, *others])[: len(own)]

    def programs(self, modules: Collection[str]) -> list[Recording]:
        """Return the programs of XLA dumps, and of other files, that are compiled from modules of these names."""
        known = self._runs or self._known_runs()
        files = [(file, run) for run in known for file in files_of_modules(run.files, modules)]
        return [r for file, run in files for r in self._read_once(file, run.name).recordings]

    def _known_runs(self) -> list[Run]:
        try:
            return self.runs()
        except InputError:  # only pasted texts
            return []

    def find(self, matches: Callable[[Run], bool]) -> list[Run]:
        """Return the runs that match, with their present files. Searches the logdir only if no known run matches."""
        if pasted := [run for run in self.pasted.runs() if matches(run)]:
            return pasted
        known = [current for run in self._runs if matches(run) and (current := logdir.list_again(run))]
        return known or [run for run in self.runs() if matches(run)]

    def _read_once(self, file: HostFile, run: str) -> Listing:
        """Read a file, or return its cached listing. Concurrent requests for a file share one reading of it."""
        if (pasted := self.pasted.get(run)) is not None:
            return merge([pasted.listing])
        version = file_version(file, run)
        if (cached := self._cache.get(version)) is not None:
            self.progress.finished(run, file)
            return cached
        while True:
            with self._lock:
                known = self._reading.get(version)
                reading = known or self._reading.setdefault(version, Future())
            if known is None:
                return self._read(file, version, reading)
            with suppress(Abandoned):  # by the request that read it
                return known.result()

    def _read(self, file: HostFile, version: FileVersion, reading: Future[Listing]) -> Listing:
        """Read a file for everyone who waits for it."""
        try:
            with self._readers:
                end_if_abandoned()
                # Another thread may have read it since this one looked into the cache.
                with self.progress.file(version.run, file):
                    listing = self._cache.get(version) or read_file(file, version.run)
            if not any(problem.may_pass for problem in listing.problems):
                self._cache.add(version, listing)
            reading.set_result(listing)
        except BaseException as error:
            reading.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._reading[version]
        return listing


def _files_of(run: Run, name: str) -> list[HostFile]:
    """Return the files of a run that may contain the recording with an id; all files where `name` is the run's."""
    # Ids are compared, not split, since names may contain any separator.
    files = titled(run.files)
    return [file for file in files if name == run.name or name.startswith(f"{run.name}|{file.host}|{_begin(file)}")]


def _begin(file: HostFile) -> str:
    """Return what the titles of a file's recordings begin with."""
    program = file.program
    return "" if program is None else f"{program.title}|" if program.title else program.module
