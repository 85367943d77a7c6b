"""Summaries in the user's cache folder: an SQLite database of JSON, which contains nothing to execute.

A summary is used while its file's path, size and modification stamp and the reader's version are unchanged. While the
database is locked by another process for long, the cache answers as if it were empty. A database that is damaged, or
that another program made, is set aside, and replaced by an empty one.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import tb_memplugin
from tb_memplugin.cache_folder import CacheSettings
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.fleet import DeviceSummary, FileSummary, ProgramSummary, ProgramUse, SeriesGrowth

SETTINGS = CacheSettings("fleet", 512 << 20)  # of about 100,000 hosts with four devices each
FILE = "summaries.db"
# Counts up with each change of what a summary contains.
READER_VERSION = f"{tb_memplugin.__version__}/5"
REFRESH_SECONDS = 3600  # between changes of `used`, so that most looks write nothing
KEPT = 0.8  # of the size, once it is exceeded
BUSY_SECONDS = 5.0
BROKEN = (sqlite3.Error, OSError, ValueError, TypeError, RecursionError)
TABLE = """CREATE TABLE summaries (
  kind TEXT, key TEXT, version TEXT, content TEXT, used INTEGER, PRIMARY KEY (kind, key))"""
SCHEMA = [("index", None), ("table", TABLE)]
CHECK_SECONDS = 0.2  # a database whose pages take longer to check is used unchecked
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
        self._is_checked = False

    def files(self, wanted: Iterable[HostFile]) -> dict[str, FileSummary]:
        """Return the summaries of files that are unchanged, by path."""
        files = {file.path: file for file in wanted if has_version(file.stamp)}
        versions = {path: _file_version(file) for path, file in files.items()}
        return self._read("file", versions, lambda path, content: _file(files[path], *content))

    def programs(self, wanted: Iterable[str]) -> dict[str, ProgramSummary]:
        """Return the summaries of programs by fingerprint."""
        versions = dict.fromkeys(wanted, READER_VERSION)
        return self._read("program", versions, lambda _, content: _typed(ProgramSummary, content))

    def put(self, files: Iterable[FileSummary], programs: Iterable[ProgramSummary]) -> None:
        """Store summaries. Those of files that may be readable a moment later are left out."""
        kept = [file for file in files if has_version(file.stamp) and not file.may_pass]
        self._write(
            [
                *(("file", file.path, _file_version(file), _content(file)) for file in kept),
                *(("program", program.fingerprint, READER_VERSION, astuple(program)) for program in programs),
            ]
        )

    def growths(self, wanted: Iterable[str]) -> list[SeriesGrowth]:
        """Return what leaks over series, which are given by fingerprints."""
        versions = dict.fromkeys(wanted, READER_VERSION)
        found = self._read("growths", versions, lambda _, content: _typed(tuple[SeriesGrowth, ...], content))
        return [growth for of_series in found.values() for growth in of_series]

    def put_growths(self, growths: Iterable[SeriesGrowth]) -> None:
        """Store what leaks over series, of each series all at once."""
        by_series: dict[str, list[Any]] = {}
        for growth in growths:
            by_series.setdefault(growth.fingerprint, []).append(astuple(growth))
        self._write([("growths", series, READER_VERSION, found) for series, found in by_series.items()])

    def content(self) -> CacheContent:
        """Return the number of summaries, and the size on disk."""
        counts: dict[str, int] = {}
        query = "SELECT kind, count(*) FROM summaries GROUP BY kind"
        if (self.folder / FILE).exists():
            self._with_database(lambda database: counts.update(database.execute(query)))
        return CacheContent(self.folder, counts.get("file", 0), counts.get("program", 0), self._bytes(), self.most)

    def clear(self) -> None:
        """Delete the database."""
        for path in self._paths():
            with suppress(OSError):
                path.unlink()

    def _read(self, kind: str, versions: Mapping[str, str], make: Callable[[str, Any], T]) -> dict[str, T]:
        """Return what is made of the content of each key that has this version."""
        found: dict[str, T] = {}

        def read(database: sqlite3.Connection) -> None:
            now = int(time.time())
            for key, version in versions.items():
                query = "SELECT content, used FROM summaries WHERE kind = ? AND key = ? AND version = ?"
                if (row := database.execute(query, (kind, key, version)).fetchone()) is None:
                    continue
                found[key] = make(key, json.loads(row[0]))
                if now - row[1] > REFRESH_SECONDS:
                    database.execute("UPDATE summaries SET used = ? WHERE kind = ? AND key = ?", (now, kind, key))

        if versions:
            self._with_database(read)
        return found

    def _write(self, summaries: Iterable[tuple[str, str, str, Any]]) -> None:
        now = int(time.time())
        rows = [(kind, key, version, json.dumps(content), now) for kind, key, version, content in summaries]
        self._with_database(
            lambda database: database.executemany("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?, ?)", rows)
        )
        self._trim()

    def _with_database(self, use: Callable[[sqlite3.Connection], object]) -> None:
        """Use the database in one transaction."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.folder / FILE, timeout=BUSY_SECONDS)) as database:
                self._check(database)
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = NORMAL")
                with database:
                    use(database)
        except sqlite3.OperationalError as error:  # locked, or on a disk that is full or read-only
            # A text that is not UTF-8 has no code.
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_ERROR:
                self._set_aside()
        except BROKEN:
            self._set_aside()

    def _check(self, database: sqlite3.Connection) -> None:
        """Make the table of an empty database. ValueError if another one has other tables, views or triggers.

        The pages are checked once, with a deadline.
        """
        schema = "SELECT type, sql FROM sqlite_schema ORDER BY type"
        if not (found := database.execute(schema).fetchall()):
            database.execute(TABLE.replace("TABLE", "TABLE IF NOT EXISTS"))
        elif found != SCHEMA:
            raise ValueError("the database of another program")
        if self._is_checked:
            return
        self._is_checked = True
        deadline = time.monotonic() + CHECK_SECONDS
        database.set_progress_handler(lambda: time.monotonic() > deadline, 1000)
        with suppress(sqlite3.OperationalError):  # the deadline
            if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise ValueError("damaged")
        database.set_progress_handler(None, 0)

    def _set_aside(self) -> None:
        with suppress(OSError):
            (self.folder / FILE).replace(self.folder / f"{FILE}.aside")
        self.clear()

    def _trim(self) -> None:
        """Delete the least recently used summaries until the database is below its size again."""
        if self._bytes() <= self.most:
            return

        def delete(database: sqlite3.Connection) -> None:
            count = database.execute("SELECT count(*) FROM summaries").fetchone()[0]
            excess = count - int(count * KEPT * self.most / self._bytes())
            oldest = "SELECT rowid FROM summaries ORDER BY used LIMIT ?"
            database.execute(f"DELETE FROM summaries WHERE rowid IN ({oldest})", (excess,))

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


def _file_version(file: HostFile | FileSummary) -> str:
    return f"{READER_VERSION} {file.size} {file.stamp}"


def _content(file: FileSummary) -> list[Any]:
    """Return the content of a file's summary: the devices that it has itself, and its programs without their sizes."""
    devices = [astuple(device) for device in file.devices if device.measured]
    programs = [(use.module, use.title, use.fingerprint, use.ran) for use in file.programs]
    return [devices, programs, file.problem, file.kind, file.step, file.time_ns]


def _file(file: HostFile, devices: Any, programs: Any, *rest: Any) -> FileSummary:
    problem, kind, step, time_ns = map(_typed, (str, str, int, int), rest)
    return FileSummary(
        *(file.path, file.size, file.stamp, file.host, ""),
        *(_typed(tuple[DeviceSummary, ...], devices), _typed(tuple[ProgramUse, ...], programs)),
        *(problem, False, kind, step, time_ns),
    )


@cache
def _hints(kind: type) -> list[Any]:
    return list(get_type_hints(kind).values())


def _typed(kind: Any, value: Any) -> Any:
    """Return a dataclass, a tuple, or a plain value of this type, from JSON. ValueError for another type."""
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_typed(get_args(kind)[0], each) for each in value)
    if type(value) is kind and not (kind is int and abs(value) >> 63):
        return value
    if not isinstance(value, list) or len(value) > len(_hints(kind)):
        raise ValueError(value)
    return kind(*map(_typed, _hints(kind), value))
