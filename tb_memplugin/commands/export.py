"""Write every allocation to a CSV, JSON or Parquet file, or the page with all it shows to an HTML file."""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

from tb_memplugin.commands.terminal import PATH, listing_of, pattern_of, printable
from tb_memplugin.errors import InputError
from tb_memplugin.logdir import is_read_with, is_remote
from tb_memplugin.sizes import bytes_text

if TYPE_CHECKING:
    from tb_memplugin.model.recording import Recording

    Writer = Callable[[Sequence[Recording], BinaryIO], None]

REPORT = ".html"
ENDINGS = (".csv", ".csv.gz", ".json", ".json.gz", ".parquet", REPORT)
FASTEST = 1  # rows are so alike that a higher level gains little, and takes several times as long


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH)
    parser.add_argument(
        "--to", metavar="FILE", required=True, help=f"what to write, by its ending: {', '.join(ENDINGS)}"
    )
    parser.add_argument("--recording", metavar="REGEX", help="only recordings whose id this is found in")
    parser.add_argument("--force", action="store_true", help="write over a FILE that is there")


def run(arguments: argparse.Namespace) -> int:
    file = arguments.to
    write, pattern = _writer(file), pattern_of(arguments.recording)
    _check(file, arguments.path, arguments.force)
    with _replacing(file) as stream:
        every = listing_of(arguments.path).recordings
        found = [r for r in every if pattern.search(r.id)]
        if not found:
            raise InputError(
                "There is nothing to export", arguments.recording or arguments.path, "see tb-memplugin summary"
            )
        if write is None:
            said = _write_report(found, every, arguments, stream)
        else:
            recordings = [recording.complete for recording in found]
            with _packed(stream, file) as packed:
                write(recordings, packed)
            said = f"{sum(len(r.allocations) for r in recordings):,} rows of {_counted(len(recordings))}"
    print(f"{printable(file)}: {bytes_text(os.path.getsize(file))}, {said}")
    return 0


def _counted(recordings: int) -> str:
    return f"{recordings:,} recording{'s' * (recordings != 1)}"


def _write_report(
    found: Sequence[Recording], every: Sequence[Recording], arguments: argparse.Namespace, stream: BinaryIO
) -> str:
    """What is in it, in words. What was asked for by name is, whatever its size."""
    from tb_memplugin.hosts import report

    name = os.path.basename(os.path.normpath(arguments.path))
    most = sys.maxsize if arguments.recording else report.MAX_BYTES
    held, _ = report.write(stream, f"Memory report of {name}", found, every, most)
    if held == len(found):
        return _counted(held)
    return f"the {held:,} largest of {_counted(len(found))}, for its size; --recording chooses others"


def _writer(file: str) -> Writer | None:
    """By the ending of the name; None for a report. InputError where it says nothing, or Parquet cannot be written."""
    from tb_memplugin.views.export.csv import write_csv
    from tb_memplugin.views.export.json import write_json
    from tb_memplugin.views.export.parquet import can_write_parquet, write_parquet

    if not file.endswith(ENDINGS):
        raise InputError("Its name does not say what to write", file, f"end it in {', '.join(ENDINGS)}")
    if file.endswith(REPORT):
        return None
    if not file.endswith(".parquet"):
        return write_csv if file.endswith((".csv", ".csv.gz")) else write_json
    if not can_write_parquet():
        raise InputError("pyarrow is needed for Parquet", file, "pip install pyarrow, or write .csv or .json")
    return write_parquet


def _check(file: str, path: str, force: bool) -> None:
    """InputError where the file must not be written."""
    if is_remote(file):
        raise InputError("Only files of this machine are written", file, "write one here, and copy it")
    if path != "-" and is_read_with(path, file):
        raise InputError("Nothing is written into a logdir", file, "name a file outside of what is read")
    if os.path.isdir(file):
        raise InputError("Is a folder", file, "name a file in it")
    if os.path.lexists(file) and not force:
        raise InputError("The file is there already", file, "give another name, or --force to write over it")


@contextmanager
def _packed(stream: BinaryIO, file: str) -> Iterator[BinaryIO]:
    if not file.endswith(".gz"):
        yield stream
        return
    with gzip.GzipFile("", "wb", FASTEST, stream, mtime=0) as packed:  # no name and no time: same rows, same bytes
        yield cast(BinaryIO, packed)


@contextmanager
def _replacing(file: str) -> Iterator[BinaryIO]:
    """A stream that becomes the file when all of it is written; until then, or if it fails, nothing changes."""
    target = os.path.realpath(file)
    made = ""
    try:
        number, made = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".tb-memplugin-")
        with open(number, "wb") as stream:
            yield stream
        os.chmod(made, 0o666 & ~_umask())
        os.replace(made, target)
        made = ""
    except OSError as error:
        raise InputError("Cannot write the file", file, error.strerror or str(error)) from error
    finally:
        if made:
            os.unlink(made)


def _umask() -> int:
    """It can only be asked for by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
