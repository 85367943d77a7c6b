"""Tables of the cache of summaries, and their rows."""

from __future__ import annotations

import sqlite3

import tb_memplugin
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.fleet import DeviceSummary, FileSummary, ProgramSummary, ProgramUse, SeriesGrowth, Site

# Increase the number after the slash with each change of a summary's content.
READER_VERSION = f"{tb_memplugin.__version__}/3"
REFRESH_SECONDS = 3600  # `used` is written at most this often, so that most lookups write nothing

SCHEMA = """
PRAGMA foreign_keys = ON;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS files (
  id INTEGER PRIMARY KEY, path TEXT UNIQUE, size INTEGER, stamp TEXT, reader TEXT, problem TEXT, used INTEGER,
  kind TEXT, step INTEGER, time_ns INTEGER);
CREATE TABLE IF NOT EXISTS devices (
  file INTEGER REFERENCES files ON DELETE CASCADE, number INTEGER, device TEXT, memory TEXT, measured INTEGER,
  peak_bytes INTEGER, capacity_bytes INTEGER, other_bytes INTEGER, title TEXT, growth TEXT, growth_bytes INTEGER,
  growth_unit TEXT, PRIMARY KEY (file, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sites (
  file INTEGER REFERENCES files ON DELETE CASCADE, device INTEGER, number INTEGER, site TEXT, bytes INTEGER,
  PRIMARY KEY (file, device, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS uses (
  file INTEGER REFERENCES files ON DELETE CASCADE, number INTEGER, module TEXT, title TEXT, fingerprint TEXT,
  PRIMARY KEY (file, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS programs (
  fingerprint TEXT PRIMARY KEY, reader TEXT, memory TEXT, peak_bytes INTEGER, reserved_bytes INTEGER,
  capacity_bytes INTEGER, other_bytes INTEGER, problem TEXT, used INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS program_sites (
  fingerprint TEXT REFERENCES programs ON DELETE CASCADE, number INTEGER, site TEXT, bytes INTEGER,
  PRIMARY KEY (fingerprint, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS growths (
  fingerprint TEXT, reader TEXT, device TEXT, growth TEXT, growth_bytes INTEGER, used INTEGER,
  PRIMARY KEY (fingerprint, device)) WITHOUT ROWID;
"""


def read_file(database: sqlite3.Connection, file: HostFile, now: int, with_sites: bool) -> FileSummary | None:
    """Return the summary of a file that is unchanged."""
    found = database.execute(
        "SELECT id, problem, used, kind, step, time_ns FROM files "
        "WHERE path = ? AND size = ? AND stamp = ? AND reader = ?",
        (file.path, file.size, file.stamp, READER_VERSION),
    ).fetchone()
    if found is None:
        return None
    number, problem, used, *moment = found
    if now - used > REFRESH_SECONDS:
        database.execute("UPDATE files SET used = ? WHERE id = ?", (now, number))
    sites: dict[int, list[Site]] = {}
    of_sites = "SELECT device, site, bytes FROM sites WHERE file = ? ORDER BY device, number"
    for device, text, size in database.execute(of_sites, (number,)) if with_sites else ():
        sites.setdefault(device, []).append(Site(text, size))
    of_devices = database.execute(
        "SELECT number, device, memory, measured, peak_bytes, capacity_bytes, other_bytes, title, growth, "
        "growth_bytes, growth_unit FROM devices WHERE file = ? ORDER BY number",
        (number,),
    )
    devices = tuple(
        DeviceSummary(device, memory, bool(measured), peak, capacity, tuple(sites.get(at, ())), other, *rest)
        for at, device, memory, measured, peak, capacity, other, *rest in of_devices
    )
    uses = database.execute("SELECT module, title, fingerprint FROM uses WHERE file = ? ORDER BY number", (number,))
    programs = tuple(ProgramUse(*use) for use in uses)
    return FileSummary(file.path, file.size, file.stamp, file.host, "", devices, programs, problem, False, *moment)


def write_file(database: sqlite3.Connection, file: FileSummary, now: int) -> None:
    """Store the summary of a file with its measured devices; those of programs are added when it is read."""
    database.execute("DELETE FROM files WHERE path = ?", (file.path,))
    number = database.execute(
        "INSERT INTO files (path, size, stamp, reader, problem, used, kind, step, time_ns) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (file.path, file.size, file.stamp, READER_VERSION, file.problem, now, file.kind, file.step, file.time_ns),
    ).lastrowid
    measured = [device for device in file.devices if device.measured]
    database.executemany(
        f"INSERT INTO devices VALUES ({', '.join('?' * 12)})",
        [
            (
                *(number, at, d.device, d.memory, d.measured, d.peak_bytes, d.capacity_bytes, d.other_bytes),
                *(d.title, d.growth, d.growth_bytes, d.growth_unit),
            )
            for at, d in enumerate(measured)
        ],
    )
    database.executemany(
        "INSERT INTO sites VALUES (?, ?, ?, ?, ?)",
        [
            (number, at, place, site.text, site.bytes)
            for at, device in enumerate(measured)
            for place, site in enumerate(device.sites)
        ],
    )
    database.executemany(
        "INSERT INTO uses VALUES (?, ?, ?, ?, ?)",
        [(number, at, use.module, use.title, use.fingerprint) for at, use in enumerate(file.programs)],
    )


def read_program(database: sqlite3.Connection, fingerprint: str, now: int) -> ProgramSummary | None:
    """Return the summary of a program."""
    found = database.execute(
        "SELECT memory, peak_bytes, reserved_bytes, capacity_bytes, other_bytes, problem, used FROM programs "
        "WHERE fingerprint = ? AND reader = ?",
        (fingerprint, READER_VERSION),
    ).fetchone()
    if found is None:
        return None
    memory, peak, reserved, capacity, other, problem, used = found
    if now - used > REFRESH_SECONDS:
        database.execute("UPDATE programs SET used = ? WHERE fingerprint = ?", (now, fingerprint))
    rows = database.execute(
        "SELECT site, bytes FROM program_sites WHERE fingerprint = ? ORDER BY number", (fingerprint,)
    )
    sites = tuple(Site(text, size) for text, size in rows)
    return ProgramSummary(fingerprint, memory, peak, reserved, capacity, sites, other, problem)


def write_program(database: sqlite3.Connection, program: ProgramSummary, now: int) -> None:
    """Store the summary of a program."""
    sizes = (program.peak_bytes, program.reserved_bytes, program.capacity_bytes, program.other_bytes)
    database.execute("DELETE FROM programs WHERE fingerprint = ?", (program.fingerprint,))
    database.execute(
        "INSERT INTO programs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (program.fingerprint, READER_VERSION, program.memory, *sizes, program.problem, now),
    )
    database.executemany(
        "INSERT INTO program_sites VALUES (?, ?, ?, ?)",
        [(program.fingerprint, at, site.text, site.bytes) for at, site in enumerate(program.sites)],
    )


def read_growths(database: sqlite3.Connection, fingerprint: str, now: int) -> list[SeriesGrowth]:
    """Return the leaks over a series, by device."""
    found = database.execute(
        "SELECT fingerprint, device, growth, growth_bytes, used FROM growths WHERE fingerprint = ? AND reader = ?",
        (fingerprint, READER_VERSION),
    ).fetchall()
    if any(now - row[-1] > REFRESH_SECONDS for row in found):
        database.execute("UPDATE growths SET used = ? WHERE fingerprint = ?", (now, fingerprint))
    return [SeriesGrowth(*row[:-1]) for row in found]


def write_growth(database: sqlite3.Connection, growth: SeriesGrowth, now: int) -> None:
    """Store the leak of a series on a device."""
    database.execute(
        "INSERT OR REPLACE INTO growths VALUES (?, ?, ?, ?, ?, ?)",
        (growth.fingerprint, READER_VERSION, growth.device, growth.growth, growth.growth_bytes, now),
    )
