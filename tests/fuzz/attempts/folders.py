"""Attempts at folders: their files are written, then listed as a logdir. An input contains names and contents."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from pathlib import Path

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.fit_records import records_of_path
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import FAILURES, InputError

FAST = "/dev/shm"  # a file system in memory, where there is one
MAX_FILES = 12


def pack(files: dict[bytes, bytes]) -> bytes:
    """Return an input: for each file its name, a null byte, the length and the content."""
    return b"".join(
        b"%b\0%b%b" % (name, len(content).to_bytes(4, "little"), content) for name, content in files.items()
    )


def unpack(data: bytes) -> dict[bytes, bytes]:
    """Return the files of an input, as far as it is one."""
    files: dict[bytes, bytes] = {}
    while data and len(files) < MAX_FILES:
        name, _, rest = data.partition(b"\0")
        length = int.from_bytes(rest[:4], "little")
        files[name] = rest[4 : 4 + length]
        data = rest[4 + length :]
    return files


class UnexpectedErrors(logging.Handler):
    """Keeps errors that the tool logs with a traceback, since it expects only those of its own."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            self.found.append(record.exc_info[1])

    def __enter__(self) -> UnexpectedErrors:
        FAILURES.disabled = False
        logging.getLogger("tb_memplugin").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("tb_memplugin").removeHandler(self)
        if self.found:
            raise self.found[0]


def attempt_folder(data: bytes, everything: bool) -> bool:
    """Write the files of an input, and list them. Return whether anything could be read."""
    with tempfile.TemporaryDirectory(dir=FAST if os.path.isdir(FAST) else None) as folder:
        _write(Path(folder), unpack(data))
        with UnexpectedErrors():
            return _list(folder, everything)


def _list(folder: str, everything: bool) -> bool:
    try:
        listing = listing_of_path(folder)
        records = records_of_path(folder)
        if everything:
            catalog = Catalog(folder)
            for run in catalog.runs():
                catalog.listing(run.name)
    except InputError as error:
        assert folder in str(error), f"the error does not name the folder: {error}"
        return False
    return bool(listing.recordings or records.outcomes)


def _write(folder: Path, files: dict[bytes, bytes]) -> None:
    """Write files below `folder`; names that the file system rejects are left out."""
    for name, content in files.items():
        path = Path(folder, os.fsdecode(name).lstrip("/"))
        if ".." in path.parts:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except (OSError, ValueError):
            shutil.rmtree(path, ignore_errors=True)
