"""Input and output of commands: recordings of a path, and files, which are complete or absent."""

from __future__ import annotations

import argparse
import gzip
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from types import FrameType
from typing import BinaryIO, cast

from tb_memplugin.catalog.dumps import skipped_text
from tb_memplugin.catalog.listing import Listing, listing_of_path, listing_of_stream
from tb_memplugin.catalog.reading import Progress
from tb_memplugin.commands.support.terminal import complain, print_answer, show, shown_on_terminal
from tb_memplugin.errors import FAILURES, InputError
from tb_memplugin.logdir import is_read_with, is_remote
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import TOP, Asked, command_line
from tb_memplugin.questions.asking.files import ExportAnswerJson, WrittenFileJson
from tb_memplugin.questions.asking.json_types import ProblemJson, problems_json
from tb_memplugin.questions.asking.selectors import Chooser, choose, is_wanted
from tb_memplugin.regex import Regex, recording_regex
from tb_memplugin.sizes import bytes_text


def asked(arguments: argparse.Namespace, path: str) -> Asked:
    """Return the question of a command about a path. JSON is complete, and texts are short, unless --top is given."""
    if "top" not in arguments:
        return Asked(path, None if arguments.json else TOP)
    return Asked(path, arguments.top, partial(command_line, top=arguments.top))


def print_written(
    arguments: argparse.Namespace,
    rows: int | None,
    recordings: Sequence[str],
    content: str,
    problems: Sequence[ProblemJson] = (),
) -> None:
    """Print what a command wrote to a file: its rows (None: a report), ids of what it contains, and that in words."""
    written: WrittenFileJson = {"path": arguments.to, "bytes": os.path.getsize(arguments.to), "rows": rows}
    if arguments.json:
        question = asked(arguments, "-")
        print_answer(question.answer(ExportAnswerJson, file=written, recordings=recordings, problems=problems))
    else:
        show(f"{arguments.to}: {bytes_text(written['bytes'])}, {content}")


STDIN = "standard input"


def listing_of(path: str, wanted: Callable[[str], object] | None = None) -> Listing:
    """Read all recordings of a path; print problems to standard error. InputError where there is nothing to read.

    Of a dump with very many programs only the largest are read, and those of which an id is `wanted`.
    """
    if path == "-":
        if sys.stdin is None:  # closed by the shell
            raise InputError("Nothing to read", STDIN, "pipe the text of an error into the command")
        return listing_of_stream(sys.stdin.buffer, STDIN)
    FAILURES.disabled = True
    progress = Progress()
    with shown_on_terminal(progress):
        listing = listing_of_path(path, wanted, progress)
    print_problems(problems_json(listing.problems))
    if text := skipped_text(listing.stages):
        complain(f"tb-memplugin: {text}")
    return listing


def chosen_recording(arguments: argparse.Namespace, chooser: Chooser | None = None) -> tuple[Recording, Listing]:
    """Return the recording that is asked for, and what the path contains. InputError if none or several match.

    `chooser`: one of questions/asking/selectors.py, by default `choose`.
    """
    wanted = arguments.recording
    listing = listing_of(arguments.path, wanted and (lambda recording_id: is_wanted(recording_id, wanted)))
    return (chooser or choose)(listing.recordings, wanted, arguments.path, listing.problems), listing


def print_problems(problems: Sequence[ProblemJson]) -> None:
    """Print a line to standard error for each file or recording that cannot be read or analyzed."""
    for problem in problems:
        complain(f"tb-memplugin: {problem['file']}: {problem['text']}")


def listing_and_pattern(arguments: argparse.Namespace) -> tuple[Listing, Regex]:
    """Read a path, and compile --recording; without it, the pattern matches every id. InputError for an invalid one."""
    pattern = recording_regex(arguments.recording or "", "--recording")
    return listing_of(arguments.path, pattern.search if arguments.recording else None), pattern


def no_match(what: str, arguments: argparse.Namespace) -> InputError:
    """Return the error of a path without recordings of the kind that is needed, or that --recording selects."""
    where = arguments.recording or arguments.path
    return InputError(what, where, "`tb-memplugin summary` lists the recordings")


ENDING = ("SIGTERM", "SIGHUP")  # Windows lacks the latter
GZIP_LEVEL = 1  # rows are so similar that a higher level saves little and takes several times as long


def check_output(file: str, path: str, force: bool) -> None:
    """Raise InputError where the file must not be written."""
    if is_remote(file):
        raise InputError("Cannot write to a remote path", file, "write a local file and copy it")
    if path != "-" and is_read_with(path, file):
        raise InputError("The logdir is never written to", file, "choose a file outside of it")
    if os.path.isdir(file):
        raise InputError("The output file is a folder", file, "give the name of a file in it")
    if os.path.lexists(file) and not force:
        raise InputError("The output file exists", file, "choose another name, or overwrite it with --force")


def check_format(file: str, suffixes: Sequence[str]) -> None:
    """Raise InputError where a file has none of the suffixes, or a package to write its format is missing."""
    if not file.endswith(tuple(suffixes)):
        raise InputError("Unknown output format", file, f"use one of the suffixes {', '.join(suffixes)}")
    if file.endswith(".parquet") and find_spec("pyarrow") is None:
        raise InputError("Parquet needs pyarrow", file, "run `pip install pyarrow`, or write .csv or .json")


@contextmanager
def output_file(file: str) -> Iterator[BinaryIO]:
    """Open the stream of an output file, which is compressed if its name ends in .gz. Signals leave no part of it."""
    with ending_by_signals(), atomic_file(file) as stream:
        if not file.endswith(".gz"):
            yield stream
            return
        # Without a name and a time in the header, the same rows give the same bytes.
        with gzip.GzipFile("", "wb", GZIP_LEVEL, stream, mtime=0) as compressed:
            yield cast(BinaryIO, compressed)


@contextmanager
def atomic_file(file: str) -> Iterator[BinaryIO]:
    """Open a stream that replaces the file once it is complete; if writing fails, the file stays as it was."""
    target = os.path.realpath(file)
    try:
        if os.path.exists(target) and not os.path.isfile(target):  # a pipe or a device, which stays one
            with open(target, "wb") as stream:
                yield stream
            return
        temporary = os.path.join(os.path.dirname(target), f".tb-memplugin-{os.urandom(8).hex()}")
        try:
            with open(temporary, "xb") as stream:
                yield stream
            os.replace(temporary, target)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except OSError as error:
        raise InputError("Cannot write the file", file, error.strerror or str(error)) from error


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Raise SystemExit in the block when a signal ends the process, so that no temporary file is left."""

    def end(number: int, frame: FrameType | None) -> None:
        for other in caught:
            signal.signal(other, signal.SIG_IGN)  # not to interrupt the cleaning up
        sys.exit(128 + number)

    # A command that runs under nohup ignores SIGHUP. Threads cannot set handlers.
    in_main = threading.current_thread() is threading.main_thread()
    ending = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    caught = [number for number in ending if in_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in caught:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)
