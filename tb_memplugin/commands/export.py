"""Export allocations as CSV, JSON or Parquet, or the page as one HTML file.

Tables have one row per buffer or allocation. The HTML file is a report that
works offline: it contains the page and its data.

examples:
  tb-memplugin export /tmp/xprof --to buffers.parquet
  tb-memplugin export /tmp/xprof --to report.html --recording 'jit_train_step'
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, cast

from tb_memplugin.commands.terminal import PATH, PATTERN, listing_of, pattern_of, print_problems, printable
from tb_memplugin.errors import InputError
from tb_memplugin.sizes import bytes_text, counted

if TYPE_CHECKING:
    from types import FrameType

    from tb_memplugin.model.recording import Recording

    Writer = Callable[[Sequence[Recording], BinaryIO], None]

REPORT = ".html"
SUFFIXES = (".csv", ".csv.gz", ".json", ".json.gz", ".parquet", REPORT)
ENDING = ("SIGTERM", "SIGHUP")  # Windows lacks the latter
GZIP_LEVEL = 1  # rows are so similar that a higher level saves little and takes several times as long


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH)
    parser.add_argument(
        "--to", metavar="FILE", required=True, help=f"output file; its suffix selects the format: {', '.join(SUFFIXES)}"
    )
    parser.add_argument("--recording", metavar="REGEX", help=PATTERN)
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it exists")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.export.rows import exportable
    from tb_memplugin.views.shared.json_types import problems_json

    file = arguments.to
    write, pattern = _writer(file), pattern_of(arguments.recording)
    _check_output(file, arguments.path, arguments.force)
    with _ending_by_signals(), _atomic_file(file) as stream:
        every = listing_of(arguments.path).recordings
        selected = [r for r in every if pattern.search(r.id)]
        if not selected:
            where, remedy = arguments.recording or arguments.path, "`tb-memplugin summary` lists the recordings"
            raise InputError("No recordings to export", where, remedy)
        selected, failed = exportable(selected)
        print_problems(problems_json(failed))
        if not selected:
            raise InputError("No recording can be exported", arguments.path, "see the problems above")
        if write is None:
            content = _write_report(selected, every, arguments, stream)
        else:
            with _compress(stream, file) as compressed:
                write(selected, compressed)
            rows = sum(len(recording.allocations) for recording in selected)
            content = f"{counted(rows, 'row')} of {counted(len(selected), 'recording')}"
    print(f"{printable(file)}: {bytes_text(os.path.getsize(file))}, {content}")
    return 2 if failed else 0


def _write_report(
    selected: Sequence[Recording], every: Sequence[Recording], arguments: argparse.Namespace, stream: BinaryIO
) -> str:
    """Write a report and describe its content in words. Recordings selected by name have no size limit."""
    from tb_memplugin.catalog import records_of_path
    from tb_memplugin.hosts import report
    from tb_memplugin.views.endpoints.source import FitOutcomes, Unreadable

    name = os.path.basename(os.path.normpath(arguments.path))
    fits = records_of_path(arguments.path)
    candidates = FitOutcomes(fits.outcomes, [Unreadable(problem.file, problem.text) for problem in fits.problems])
    max_bytes = sys.maxsize if arguments.recording else report.MAX_BYTES
    written, _ = report.write(stream, f"Memory report of {name}", selected, every, max_bytes, candidates)
    if written == len(selected):
        return counted(written, "recording")
    count = counted(len(selected), "recording")
    return f"the {written:,} largest of {count}, to limit its size; --recording selects others"


def _writer(file: str) -> Writer | None:
    """Return the writer for the file's suffix, None for a report. InputError for a suffix that cannot be written."""
    from tb_memplugin.views.export.csv import write_csv
    from tb_memplugin.views.export.json import write_json
    from tb_memplugin.views.export.parquet import can_write_parquet, write_parquet

    if not file.endswith(SUFFIXES):
        raise InputError("Unknown output format", file, f"use one of the suffixes {', '.join(SUFFIXES)}")
    if file.endswith(REPORT):
        return None
    if not file.endswith(".parquet"):
        return write_csv if file.endswith((".csv", ".csv.gz")) else write_json
    if not can_write_parquet():
        raise InputError("Parquet needs pyarrow", file, "run `pip install pyarrow`, or write .csv or .json")
    return write_parquet


def _check_output(file: str, path: str, force: bool) -> None:
    """Raise InputError where the file must not be written."""
    from tb_memplugin.logdir import is_read_with, is_remote

    if is_remote(file):
        raise InputError("Cannot write to a remote path", file, "write a local file and copy it")
    if path != "-" and is_read_with(path, file):
        raise InputError("The logdir is never written to", file, "choose a file outside of it")
    if os.path.isdir(file):
        raise InputError("The output file is a folder", file, "give the name of a file in it")
    if os.path.lexists(file) and not force:
        raise InputError("The output file exists", file, "choose another name, or overwrite it with --force")


@contextmanager
def _compress(stream: BinaryIO, file: str) -> Iterator[BinaryIO]:
    if not file.endswith(".gz"):
        yield stream
        return
    import gzip

    # Without a name and a time in the header, the same rows give the same bytes.
    with gzip.GzipFile("", "wb", GZIP_LEVEL, stream, mtime=0) as compressed:
        yield cast(BinaryIO, compressed)


@contextmanager
def _atomic_file(file: str) -> Iterator[BinaryIO]:
    """Open a stream that replaces the file once it is complete; if writing fails, the file stays as it was."""
    import secrets

    target = os.path.realpath(file)
    try:
        if os.path.exists(target) and not os.path.isfile(target):  # a pipe or a device, which stays one
            with open(target, "wb") as stream:
                yield stream
            return
        temporary = os.path.join(os.path.dirname(target), f".tb-memplugin-{secrets.token_hex(8)}")
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
def _ending_by_signals() -> Iterator[None]:
    """End the block by an exception when the process is told to end, so that it leaves no temporary file."""
    import signal
    import threading

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
