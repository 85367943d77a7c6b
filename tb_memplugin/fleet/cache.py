"""Summaries in the user's cache folder: an SQLite database of plain columns, which contains nothing to execute.

A summary is used while its file's path, size and modification stamp and the reader's version are unchanged. While the
database is damaged, or locked by another process for long, the cache answers as if it were empty.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from tb_memplugin.cache_folder import CacheSettings
from tb_memplugin.fleet.cache_tables import (
    SCHEMA,
    read_file,
    read_growths,
    read_program,
    write_file,
    write_growth,
    write_program,
)
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.fleet import FileSummary, ProgramSummary, SeriesGrowth

SETTINGS = CacheSettings("fleet", 512 << 20)  # enough for about 100,000 hosts with four devices each
FILE = "summaries.sqlite"
KEPT = 0.8  # a database above its size is trimmed to this share of it, a choice, and so not at every write
BUSY_SECONDS = 5.0
BROKEN = (sqlite3.Error, OSError, ValueError, TypeError)
T = TypeVar("T")


class CacheContent(NamedTuple):
    """The content of a cache, and the size that it may have."""

    folder: Path
    files: int
    programs: int
    bytes: int
    most: int


class SummaryCache:
    """Summaries of files and of programs. Methods never raise: a summary that cannot be read counts as missing."""

    def __init__(self, folder: Path | None = None, most: int | None = None) -> None:
        self.folder = folder or SETTINGS.folder()
        self.most = most if most is not None else SETTINGS.bytes()

    def files(self, wanted: Iterable[HostFile], sites: bool = True) -> dict[str, FileSummary]:
        """Return the summaries of unchanged files, by path. Reading them without `sites` takes half of the time."""
        found: dict[str, FileSummary] = {}

        def read(database: sqlite3.Connection) -> None:
            now = int(time.time())
            for file in wanted:
                if has_version(file.stamp) and (summary := read_file(database, file, now, sites)) is not None:
                    found[file.path] = summary

        self._with_database(read)
        return found

    def programs(self, wanted: Iterable[str]) -> dict[str, ProgramSummary]:
        """Return the summaries of programs by fingerprint."""
        found: dict[str, ProgramSummary] = {}

        def read(database: sqlite3.Connection) -> None:
            now = int(time.time())
            for fingerprint in wanted:
                if (program := read_program(database, fingerprint, now)) is not None:
                    found[fingerprint] = program

        self._with_database(read)
        return found

    def put(self, files: Iterable[FileSummary], programs: Iterable[ProgramSummary]) -> None:
        """Store summaries, except those of files that failed but may be readable a moment later."""

        def write(database: sqlite3.Connection) -> None:
            now = int(time.time())
            for file in files:
                if has_version(file.stamp) and not file.may_pass:
                    write_file(database, file, now)
            for program in programs:
                write_program(database, program, now)

        self._with_database(write)
        self._trim()

    def growths(self, wanted: Iterable[str]) -> list[SeriesGrowth]:
        """Return the leaks over the series with these fingerprints."""
        found: list[SeriesGrowth] = []

        def read(database: sqlite3.Connection) -> None:
            now = int(time.time())
            for fingerprint in wanted:
                found.extend(read_growths(database, fingerprint, now))

        if wanted:
            self._with_database(read)
        return found

    def put_growths(self, growths: Iterable[SeriesGrowth]) -> None:
        """Store the leaks over series."""

        def write(database: sqlite3.Connection) -> None:
            now = int(time.time())
            for growth in growths:
                write_growth(database, growth, now)

        self._with_database(write)
        self._trim()

    def content(self) -> CacheContent:
        """Return the number of summaries, and the size on disk."""
        counts = [0, 0]

        def count(database: sqlite3.Connection) -> None:
            for number, table in enumerate(("files", "programs")):
                counts[number] = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

        if (self.folder / FILE).exists():
            self._with_database(count)
        return CacheContent(self.folder, counts[0], counts[1], self._bytes(), self.most)

    def clear(self) -> None:
        """Delete the database."""
        for path in self._paths():
            with suppress(OSError):
                path.unlink()

    def _with_database(self, use: Callable[[sqlite3.Connection], None]) -> None:
        """Use the database in one transaction. Delete the database if it is damaged."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.folder / FILE, timeout=BUSY_SECONDS)) as database:
                database.executescript(SCHEMA)
                with database:
                    use(database)
        except sqlite3.OperationalError as error:  # locked, or on a disk that is full or read-only
            if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:  # another version made its tables
                self.clear()
        except BROKEN:
            self.clear()

    def _trim(self) -> None:
        """Delete the least recently used summaries until the database is below its size again."""
        if self._bytes() <= self.most:
            return

        def delete(database: sqlite3.Connection) -> None:
            for table, key in (("files", "path"), ("programs", "fingerprint"), ("growths", "fingerprint")):
                count = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                excess = count - int(count * KEPT * self.most / self._bytes())
                database.execute(
                    f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} ORDER BY used LIMIT ?)", (excess,)
                )

        self._with_database(delete)
        with suppress(*BROKEN), closing(sqlite3.connect(self.folder / FILE, timeout=BUSY_SECONDS)) as database:
            database.execute("VACUUM")

    def _bytes(self) -> int:
        found = 0
        for path in self._paths():
            with suppress(OSError):
                found += path.stat().st_size
        return found

    def _paths(self) -> list[Path]:
        return [self.folder / f"{FILE}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")]


def has_version(stamp: str) -> bool:
    """Return whether a stamp contains more than the file's size, which is all that some stores report."""
    return bool(stamp.rpartition("-")[0])
