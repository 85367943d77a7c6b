"""The recordings of a logdir, for servers: each file is read once, and recordings are cached within a limit."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future

from tb_memplugin import logdir, readers
from tb_memplugin.catalog.dumps import MAX_PROGRAMS, files_of_modules
from tb_memplugin.catalog.fit_records import FitRecords, read_records
from tb_memplugin.catalog.listing import Listing, listing_of_files, merge, read_file
from tb_memplugin.catalog.listing_cache import FileVersion, ListingCache
from tb_memplugin.catalog.pasted_texts import PastedTexts
from tb_memplugin.catalog.program_chunks import chunk_programs, link_chunks
from tb_memplugin.catalog.progress import Progress
from tb_memplugin.catalog.quick import before_reading, before_searching
from tb_memplugin.catalog.run_peaks import RunPeaks
from tb_memplugin.catalog.shared_call import SharedCall
from tb_memplugin.catalog.timelines import link_timelines
from tb_memplugin.catalog.uploads import Uploads
from tb_memplugin.errors import InputError
from tb_memplugin.logdir import HostFile, Run
from tb_memplugin.model.recording import Recording

# A program of 500,000 buffers takes about 100 MB, so the cache has room for those that a user switches between.
MAX_CACHE_BYTES = 1 << 30
# The page asks for runs and then for a fit's candidates: one search of the logdir answers both.
FRESH_SECONDS = 5
# A search that took longer answers as long again: a request that goes from lane to lane would search for each of them.
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
        self._searched = float("-inf")
        self._search_seconds = 0.0  # of the last search, if it was slow
        self._search = SharedCall(self._search_now)  # it reads every folder
        self._cache = ListingCache(cache_bytes)
        self._peaks = RunPeaks()
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
        before_searching()
        if time.monotonic() - self._searched < self._search_seconds:
            return [*self._runs, *self.pasted.runs()]
        return self._search()

    def _search_now(self) -> list[Run]:
        began = time.monotonic()
        every: list[Run] = []
        errors: list[InputError] = []
        for name, root in self._roots.items():
            try:
                runs = logdir.find_all(root)
                every += [run._replace(name=f"{name}/{run.name}") for run in runs] if name else runs
                if not any(run.files for run in runs):
                    errors.append(logdir.no_runs(root))
            except InputError as error:
                errors.append(error)
        every = logdir.newest_first(every)
        self._runs = found = [run for run in every if run.files]
        self._fits = [run for run in every if run.record is not None]
        self._searched = time.monotonic()
        took = self._searched - began
        self._search_seconds = took if found and took > SLOW_SEARCH_SECONDS else 0.0
        self._cache.keep_only({file.path for run in found for file in run.files})
        self._peaks.keep_only(found)
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
        if host is None:
            self._peaks.add(run, listing)
        if names := chunk_programs(listing.recordings):
            listing.recordings[:] = link_chunks(listing.recordings, self.programs(names))
        return listing

    def dropped_text(self, run: str) -> str:
        """Return a sentence about the files of a run that were dropped to save memory; empty where there are none."""
        paths = {file.path for known in self._runs if known.name == run for file in known.files}
        return self._cache.dropped_text(run, paths)

    def peak_bytes(self, run: Run) -> int | None:
        """Return the largest peak of a run whose files were read, and have not changed since; None for others."""
        return self._peaks.get(run)

    def recording(self, recording_id: str) -> Recording:
        """Return the recording with an id. InputError where it does not exist, or no longer exists."""
        recordings = self.recordings_of_file(recording_id)
        return next(recording for recording in recordings if recording.id == recording_id)

    def recordings_of_file(self, recording_id: str) -> list[Recording]:
        """Return all recordings of the file that contains the recording with an id. InputError as for `recording`."""
        # Ids are compared, not split, since names may contain any separator.
        for run in self.find(lambda run: recording_id.startswith(f"{run.name}|")):
            for file in run.files:
                title = f"{file.dumped.title}|" if file.dumped else ""
                if recording_id.startswith(f"{run.name}|{file.host}|{title}"):
                    recordings = self._read_linked(file, run)
                    if any(recording.id == recording_id for recording in recordings):
                        return recordings
        raise InputError("Unknown recording", recording_id, "choose one that api/recordings lists")

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
        known = [current for run in self._runs if matches(run) and (current := self._list_again(run))]
        return known or [run for run in self.runs() if matches(run)]

    def _list_again(self, run: Run) -> Run | None:
        if logdir.is_remote(run.root):
            before_searching()
        return logdir.list_again(run)

    def _read_once(self, file: HostFile, run: str) -> Listing:
        """Read a file, or return its cached listing. Concurrent requests for a file share one reading of it."""
        if (pasted := self.pasted.get(run)) is not None:
            return merge([pasted.listing])
        version = FileVersion(file.path, file.stamp, run)
        if (cached := self._cache.get(version)) is not None:
            self.progress.finished(run, file)
            return cached
        before_reading()
        with self._lock:
            known = self._reading.get(version)
            reading = known or self._reading.setdefault(version, Future())
        return known.result() if known else self._read(file, version, reading)

    def _read(self, file: HostFile, version: FileVersion, reading: Future[Listing]) -> Listing:
        """Read a file for everyone who waits for it."""
        try:
            with self._readers:
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
