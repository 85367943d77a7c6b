"""The recordings of a run or a path: read once, kept in bounded memory, safe to ask from any thread.

A damaged file or module becomes a Problem beside the recordings of the others, never an exception.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from tb_memplugin import logdir, readers
from tb_memplugin.analysis.ownership.torch_categories import with_categories
from tb_memplugin.analysis.usage.headroom import with_device_limits
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.errors import InputError
from tb_memplugin.logdir import HostFile, Run
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.pasted_texts import PastedTexts
from tb_memplugin.readers.common.part import NoEventsReason
from tb_memplugin.readers.oom_text import MAX_BYTES, read_oom_text

logger = logging.getLogger(__name__)

# A program of 500,000 buffers holds about 100 MB of columns; the few that a user flips between should stay.
CACHE_BYTES = 1 << 30
TIMELINE = ".raw.json.gz"  # of PyTorch's profiler, the form that tells allocations with their categories


@dataclass(frozen=True, slots=True)
class Problem:
    """What in `file` could not be read, and what to do."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Largest peak first."""

    recordings: list[Recording] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    silent: dict[str, NoEventsReason] = field(default_factory=dict)  # by host: why it has no recording over time

    @property
    def nbytes(self) -> int:
        return sum(recording.nbytes for recording in self.recordings)


class Catalog:
    """The recordings of a logdir, or of several: `roots` by the name that is put before their runs' names."""

    def __init__(self, roots: str | Mapping[str, str], cache_bytes: int = CACHE_BYTES) -> None:
        self._roots = {"": roots} if isinstance(roots, str) else roots
        self.logdir = ", ".join(self._roots.values())  # for people
        self._cache_bytes = cache_bytes
        self._lock = threading.Lock()
        self.pasted = PastedTexts()
        self._runs: list[Run] = []  # of the last walk
        self._listings: OrderedDict[tuple[str, str, str], Listing] = OrderedDict()
        self._reading: dict[tuple[str, str, str], threading.Lock] = {}

    def runs(self) -> list[Run]:
        """Newest name first, and what was pasted last. InputError where there is nothing."""
        found: list[Run] = []
        errors: list[InputError] = []
        for name, root in self._roots.items():
            try:
                runs = logdir.find_runs(root)
                found += [replace(run, name=f"{name}/{run.name}") for run in runs] if name else runs
            except InputError as error:
                errors.append(error)
        self._runs = found
        if found or self.pasted.runs():
            return [*found, *self.pasted.runs()]
        raise errors[0] if errors else InputError("No logdir", "--logdir", "start the server with one")

    def listing(self, run: str, host: str | None = None) -> Listing:
        """The recordings of a run, or of one host of it. InputError where there is no such run or host."""
        if not (found := self.find(lambda candidate: candidate.name == run)):
            known = self.runs()
            raise InputError("Unknown run", run, f"the newest of {len(known)} is {known[0].name}")
        return self.listing_of_run(found[0], host)

    def listing_of_run(self, run: Run, host: str | None = None) -> Listing:
        files = [file for file in run.files if host in (None, file.host)]
        if not files:
            known = ", ".join(file.host for file in run.files)
            raise InputError("Unknown host", str(host), f"the hosts of {run.name} are: {known}")
        return _merged(self._read_once(file, run.name) for file in files)

    def recording(self, recording_id: str) -> Recording:
        """InputError where there is none of that id, or no more."""
        return next(recording for recording in self.beside(recording_id) if recording.id == recording_id)

    def beside(self, recording_id: str) -> list[Recording]:
        """The recordings of the file that holds the one of that id, itself among them. InputError as above."""
        # Any of the separators may occur in a name, so ids are compared, not split.
        for run in self.find(lambda run: recording_id.startswith(f"{run.name}|")):
            for file in run.files:
                if recording_id.startswith(f"{run.name}|{file.host}|"):
                    recordings = self._in_company(file, run)
                    if any(recording.id == recording_id for recording in recordings):
                        return recordings
        raise InputError("Unknown recording", recording_id, "choose one that api/recordings lists")

    def _in_company(self, file: HostFile, run: Run) -> list[Recording]:
        """A file's recordings, with what the other files of the run tell of them."""
        own = self._read_once(file, run.name).recordings
        if not any(recording.kind.has_tensor_stacks for recording in own):
            return own
        others = [other for other in run.files if other.path.endswith(TIMELINE)]
        company = [r for other in others for r in self._read_once(other, run.name).recordings]
        return with_categories([*own, *company])[: len(own)]

    def find(self, matches: Callable[[Run], bool]) -> list[Run]:
        """The runs that match, their files as they are now: walks the logdir only for runs it has not seen."""
        if pasted := [run for run in self.pasted.runs() if matches(run)]:
            return pasted
        seen = [again for run in self._runs if matches(run) and (again := logdir.seen_again(run))]
        return seen or [run for run in self.runs() if matches(run)]

    def _read_once(self, file: HostFile, run: str) -> Listing:
        """Two requests for one file share one reading of it; different files are read side by side."""
        if (pasted := self.pasted.get(run)) is not None:
            return _merged([Listing(pasted.recordings)])
        key = (file.path, file.stamp, run)
        with self._lock:
            reading = self._reading.setdefault(key, threading.Lock())
        with reading:
            with self._lock:
                if (known := self._listings.get(key)) is not None:
                    self._listings.move_to_end(key)
                    return known
            listing = read_file(file, run)
            with self._lock:
                self._keep(key, listing)
                self._reading.pop(key, None)
            return listing

    def _keep(self, key: tuple[str, str, str], listing: Listing) -> None:
        path, _, run = key
        for old in [old for old in self._listings if old[0] == path and old[2] == run]:
            del self._listings[old]  # the file has changed since
        self._listings[key] = listing
        held = sum(kept.nbytes for kept in self._listings.values())
        while held > self._cache_bytes and len(self._listings) > 1:
            _, dropped = self._listings.popitem(last=False)
            held -= dropped.nbytes


def listing_of_path(path: str) -> Listing:
    """The recordings of a logdir, a run's folder, or a file. InputError where there is nothing to read."""
    if not logdir.is_remote(path) and not os.path.isdir(path):
        return read_file(logdir.host_file(path), run="")
    return _merged(read_file(file, run.name) for run in logdir.find_runs(path) for file in run.files)


def listing_of_stream(stream: BinaryIO, source: str) -> Listing:
    """The recordings of a text that is in no file, from as much of its end as is read of any. InputError if none."""
    text, skipped = b"", 0
    while chunk := stream.read(MAX_BYTES):
        text += chunk
        skipped += max(len(text) - MAX_BYTES, 0)
        text = text[-MAX_BYTES:]
    return _merged([Listing(read_oom_text(text, source=source, skipped=skipped))])


def read_file(file: HostFile, run: str) -> Listing:
    """Everything in one file; what is damaged in it is a Problem."""
    listing = Listing()
    try:
        parts = readers.open_file(logdir.read_bytes(file), file.path, run=run, host=file.host)
    except Exception as error:
        listing.problems.append(_problem(file.path, "", error))
        return listing
    for part in parts:
        try:
            recordings = part.read()
            for recording in recordings:
                peak(recording)  # cached on the recording, and the first thing that every caller asks
            if not recordings and part.no_events_reason is not None:
                listing.silent[file.host] = part.no_events_reason()
        except Exception as error:
            listing.problems.append(_problem(file.path, part.title, error))
        else:
            listing.recordings.extend(recordings)
    listing.recordings[:] = with_device_limits(listing.recordings)
    if any(recording.axis is Axis.TIME for recording in listing.recordings):
        listing.silent.clear()
    return _merged([listing])


def _problem(path: str, part: str, error: Exception) -> Problem:
    """Hostile bytes fail in ways that no reader foresaw: those go to the log, and the user gets one line."""
    about = f"{part}: " if part else ""
    if isinstance(error, InputError):
        return Problem(path, f"{about}{error.what}: {error.remedy}")
    logger.warning("Reading %s %s", path, part, exc_info=error)
    return Problem(path, f"{about}cannot be read ({type(error).__name__}: {error}); is it damaged?")


def _merged(listings: Iterable[Listing]) -> Listing:
    whole = Listing()
    for listing in listings:
        whole.recordings.extend(listing.recordings)
        whole.problems.extend(listing.problems)
        whole.silent.update(listing.silent)
    whole.recordings[:] = with_categories(whole.recordings)
    whole.recordings.sort(key=lambda recording: (-peak(recording).bytes, recording.id))
    return whole
