"""The recordings of a file or a path. Damaged files and modules become problems beside the other recordings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import BinaryIO

from tb_memplugin import logdir, readers
from tb_memplugin.analysis.usage.headroom import with_device_limits
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.catalog.dumps import LeftOut, largest_programs
from tb_memplugin.catalog.linking import link_chunks, link_timelines
from tb_memplugin.catalog.programs import titled
from tb_memplugin.catalog.reading import Progress
from tb_memplugin.errors import InputError, NoBufferAssignmentError, ReadError, log_failure
from tb_memplugin.formats import OOM_TEXT_BYTES, XPLANE
from tb_memplugin.logdir import HostFile, Stages
from tb_memplugin.logdir.names import parse_program
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.program import InstructionTimes
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.part import FilePart, NoEventsReason

MAX_REMOTE_FILES = 4  # of a run, read side by side; each may take several times its size


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of `file` that could not be read, and the remedy.

    `may_pass`: the cause is not in the file, so that it may be readable a moment later.
    """

    file: str
    text: str
    may_pass: bool = False

    def __post_init__(self) -> None:
        for name in ("file", "text"):  # names of files that are not UTF-8, which no answer can contain
            object.__setattr__(self, name, logdir.path_text(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Listing:
    """Recordings, largest peak first, with problems and missing recordings over time."""

    recordings: list[Recording] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    no_events: dict[str, NoEventsReason] = field(default_factory=dict)  # by host without a recording over time
    left_out: tuple[LeftOut, ...] = ()
    stages: tuple[Stages, ...] = ()


def listing_of_path(
    path: str, wanted: Callable[[str], object] | None = None, progress: Progress | None = None
) -> Listing:
    """List the recordings of a logdir, a run's folder, or a file. InputError where there is nothing to read.

    Of a dump with very many programs only the largest are read, and those of which an id is `wanted`.
    """
    counted = progress or Progress()

    def read(file: HostFile, run: str) -> Listing:
        with counted.file("", file):
            return read_file(file, run)

    if not logdir.is_remote(path) and not os.path.isdir(path):
        return stages_explained(read(logdir.dumped_file(path), ""))
    runs = logdir.find_runs(path)
    with counted.files("", (file for run in runs for file in run.files)):
        return merge(listing_of_files(run.files, run.name, read, wanted) for run in runs)


def listing_of_files(
    files: Sequence[HostFile],
    run: str,
    read: Callable[[HostFile, str], Listing],
    wanted: Callable[[str], object] | None = None,
) -> Listing:
    """List the recordings of a run's files, without the smallest programs of a large dump."""
    chosen, left_out = largest_programs(titled(files), run, wanted)
    listing = stages_explained(merge(_read_each(chosen, run, read)))
    return replace(listing, left_out=(left_out,)) if left_out else listing


def _read_each(files: Sequence[HostFile], run: str, read: Callable[[HostFile, str], Listing]) -> Iterable[Listing]:
    """Read files one by one; those of a remote store side by side, as reading them is mostly waiting."""

    def read_one(file: HostFile) -> Listing:
        return (read_file if file.stages else read)(file, run)  # the entry for the stages of a dump is no file

    if len(files) < 2 or not logdir.is_flat_store(files[0].path):
        return map(read_one, files)
    with ThreadPoolExecutor(MAX_REMOTE_FILES, "memory-remote") as pool:
        return list(pool.map(read_one, files))


def listing_of_stream(stream: BinaryIO, source: str) -> Listing:
    """List the recordings of a text: an error, a log or a program. InputError if it is none of these.

    Of a long one, the end is read, and excerpts of the lines before it.
    """
    from tb_memplugin.readers.oom_text.excerpts import LogExcerpts  # 30 ms, which a summary does not need
    from tb_memplugin.readers.text import read_text

    text, skipped, excerpts = b"", 0, LogExcerpts()
    while chunk := stream.read(OOM_TEXT_BYTES):
        text += chunk
        excerpts.add(text[:-OOM_TEXT_BYTES])
        skipped += max(len(text) - OOM_TEXT_BYTES, 0)
        text = text[-OOM_TEXT_BYTES:]
    if before := excerpts.content():
        text, skipped = before + b"\n" + text, max(skipped - len(before), 0)
    return merge([Listing(read_text(text, source=source, skipped=skipped))])


def read_file(file: HostFile, run: str) -> Listing:
    """List the recordings of one file; damaged parts are problems."""
    if file.stages is not None:
        return Listing(stages=(file.stages,))
    if file.unreadable:
        return Listing(problems=[Problem(file.path, file.unreadable)])
    try:
        content, skipped = logdir.read_content(file)
        content = logdir.with_texts(file, content)
    except Exception as error:
        return Listing(problems=[_problem(file.path, "", error)])
    return with_times(file, listing_of_content(file, run, content, skipped))


def with_times(file: HostFile, listing: Listing) -> Listing:
    """Return the listing of a profile, whose programs have the times of their instructions once these are asked for.

    These are in the parts of the profile that nothing else needs.
    """
    if file.format is not XPLANE:
        return listing
    listing.recordings[:] = [
        replace(found, program=replace(found.program, measured=Lazy(partial(_read_times, file, found.title))))
        if found.program is not None
        else found
        for found in listing.recordings
    ]
    return listing


def _read_times(file: HostFile, program: str) -> InstructionTimes:
    from tb_memplugin.readers.xplane.instruction_times import instruction_times

    return instruction_times(logdir.read_bytes(file), program, logdir.path_text(file.path))


def listing_of_content(file: HostFile, run: str, content: bytes | memoryview, skipped: int = 0) -> Listing:
    """List the recordings of a file's content; damaged parts are problems. `skipped`: as for readers.open_file."""
    listing = Listing()
    try:
        parts = readers.open_file(content, logdir.path_text(file.path), run=run, host=file.host, skipped=skipped)
    except Exception as error:
        return Listing(problems=[_problem(file.path, "", error)])
    for part in parts:
        try:
            recordings = _read_part(part, file)
            for recording in recordings:
                peak(recording)  # computed here, since every caller needs it and damage may show only now
            if not recordings and part.no_events_reason is not None:
                listing.no_events[file.host] = part.no_events_reason()
        except Exception as error:
            if isinstance(error, NoBufferAssignmentError) and logdir.is_program(file.path):
                return Listing(stages=(Stages(1, (error.module,), logdir.path_text(file.path)),))
            listing.problems.append(_problem(file.path, part.title, error))
        else:
            listing.recordings.extend(recordings)
    listing.recordings[:] = with_device_limits(listing.recordings)
    if any(recording.axis is Axis.TIME for recording in listing.recordings):
        listing.no_events.clear()
    return merge([listing])


def _read_part(part: FilePart, file: HostFile) -> list[Recording]:
    recordings = part.read()
    if file.program is None or not file.program.title:
        return recordings
    recordings = [replace(recording, title=file.program.title) for recording in recordings]
    if parse_program(os.path.basename(file.path)) is None:
        return recordings
    # Imported here, since protobuf takes 60 ms, which other files do not need.
    from tb_memplugin.catalog.beside_programs import with_dump_files

    return with_dump_files(recordings, file.program, file.top)


def stages_explained(listing: Listing) -> Listing:
    """Return the listing of a run or file with its stages paired with its programs.

    Where it has no recording, there is a problem instead of skipped stages.
    """
    if not listing.stages:
        return listing
    if not listing.recordings:
        modules = [module for skipped in listing.stages for module in skipped.modules]
        reason = logdir.without_program(modules, as_proto=any(skipped.count for skipped in listing.stages))
        return replace(listing, problems=[*listing.problems, Problem(listing.stages[0].path, reason)], stages=())
    programs = {recording.program.module for recording in listing.recordings if recording.program is not None}
    return replace(listing, stages=tuple(skipped.without(programs) for skipped in listing.stages))


def merge(listings: Iterable[Listing]) -> Listing:
    """Merge listings into one."""
    merged = Listing()
    for listing in listings:
        merged.recordings.extend(listing.recordings)
        merged.problems.extend(listing.problems)
        merged.no_events.update(listing.no_events)
        left_out, stages = (*merged.left_out, *listing.left_out), (*merged.stages, *listing.stages)
        merged = replace(merged, left_out=left_out, stages=stages)
    merged.recordings[:] = link_chunks(link_timelines(merged.recordings))
    merged.recordings.sort(key=lambda recording: (-peak(recording).bytes, recording.id))
    return merged


def _problem(path: str, part: str, error: Exception) -> Problem:
    """Describe an error in one line. Unforeseen ones, which damaged files cause, are also logged with a traceback."""
    about = f"{part}: " if part else ""
    if isinstance(error, InputError):
        return Problem(path, f"{about}{error.what}: {error.remedy}", isinstance(error, ReadError))
    if isinstance(error, MemoryError):
        return Problem(path, f"{about}not enough memory to read it: end other programs, then reload", may_pass=True)
    log_failure("Reading %s %s", path, part, error=error)
    text = f"{about}cannot be read ({type(error).__name__}: {error}); is it damaged?"
    return Problem(path, text, isinstance(error, OSError))
