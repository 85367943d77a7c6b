"""The cache of summaries."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from tb_memplugin.fleet import cache
from tb_memplugin.fleet.cache import FILE, SETTINGS, SummaryCache
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.fleet import DeviceSummary, FileSummary, ProgramSummary, ProgramUse, Site

FILE_OF_HOST = HostFile("/log/a.xplane.pb", "a", 100, "17-100")
DEVICE = DeviceSummary(
    "TPU core 0",
    "HBM",
    True,
    2**40,
    2**41,
    (Site("a.py:1 f", 5), Site("b.py:2 g", 3)),
    7,
    "allocator",
    "a.py:1 f",
    9,
    "step",
)
SUMMARY = FileSummary(
    FILE_OF_HOST.path, 100, "17-100", "a", "", (DEVICE, replace(DEVICE, device="TPU core 1", sites=())),
    (ProgramUse("jit_f", "jit_f(1)", "ab"), ProgramUse("jit_g", "jit_g(2)", "cd")), "half of it is damaged",
)  # fmt: skip
PROGRAM = ProgramSummary("ab", "HBM", 10, 12, 2**34, (Site("a.py:1 dot", 10),), 0, "")


def test_what_is_read_is_what_was_stored(tmp_path: Path) -> None:
    SummaryCache(tmp_path).put([SUMMARY], [PROGRAM])
    assert SummaryCache(tmp_path).files([FILE_OF_HOST]) == {FILE_OF_HOST.path: SUMMARY}
    assert SummaryCache(tmp_path).programs(["ab", "other"]) == {"ab": PROGRAM}


def test_storing_again_replaces(tmp_path: Path) -> None:
    kept = SummaryCache(tmp_path)
    kept.put([SUMMARY], [PROGRAM])
    changed = replace(SUMMARY, devices=(DEVICE,), programs=(), problem="")
    kept.put([changed], [replace(PROGRAM, peak_bytes=11, sites=())])
    assert kept.files([FILE_OF_HOST]) == {FILE_OF_HOST.path: changed}
    assert kept.programs(["ab"])["ab"].sites == ()
    assert kept.content()[1:3] == (1, 1)


@pytest.mark.parametrize("change", [{"path": "/log/b"}, {"size": 101}, {"stamp": "18-100"}])
def test_another_file_is_not_the_same(tmp_path: Path, change: dict[str, Any]) -> None:
    SummaryCache(tmp_path).put([SUMMARY], [])
    assert not SummaryCache(tmp_path).files([FILE_OF_HOST._replace(**change)])


def test_another_version_of_the_reader_reads_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SummaryCache(tmp_path).put([SUMMARY], [PROGRAM])
    monkeypatch.setattr(cache, "READER_VERSION", "other")
    assert not SummaryCache(tmp_path).files([FILE_OF_HOST]) and not SummaryCache(tmp_path).programs(["ab"])


def test_what_may_pass_and_what_has_no_version_is_not_stored(tmp_path: Path) -> None:
    unversioned = replace(SUMMARY, path="/log/b", stamp="-100")
    SummaryCache(tmp_path).put([replace(SUMMARY, may_pass=True), unversioned], [])
    files = [FILE_OF_HOST, FILE_OF_HOST._replace(path="/log/b", stamp="-100")]
    assert not SummaryCache(tmp_path).files(files)


def test_a_plan_is_not_stored_with_its_file(tmp_path: Path) -> None:
    SummaryCache(tmp_path).put([replace(SUMMARY, devices=(replace(DEVICE, measured=False),))], [])
    assert SummaryCache(tmp_path).files([FILE_OF_HOST])[FILE_OF_HOST.path].devices == ()


@pytest.mark.parametrize("content", [b"", b"no database" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_database_is_as_if_it_were_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    kept = SummaryCache(tmp_path)
    assert not kept.files([FILE_OF_HOST])
    kept.put([SUMMARY], [PROGRAM])
    assert kept.files([FILE_OF_HOST])


def test_a_database_of_another_layout_is_replaced(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("CREATE TABLE summaries (other TEXT)")
    database.close()
    kept = SummaryCache(tmp_path)
    kept.put([SUMMARY], [PROGRAM])
    kept.put([SUMMARY], [PROGRAM])
    assert kept.files([FILE_OF_HOST])


@pytest.mark.parametrize("content", ["[" * 100_000, "null", "[1]", "{}", "not JSON"])
def test_an_edited_summary_is_missing(tmp_path: Path, content: str) -> None:
    SummaryCache(tmp_path).put([SUMMARY], [PROGRAM])
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("UPDATE summaries SET content = ?", (content,))
    assert not SummaryCache(tmp_path).files([FILE_OF_HOST]) and not SummaryCache(tmp_path).programs(["ab"])


ENDLESS = """CREATE VIEW summaries AS WITH RECURSIVE n(kind, key, version, content, used) AS
  (SELECT 'file', '', '', '', 0 UNION ALL SELECT kind, key, version, content, used + 1 FROM n) SELECT * FROM n"""
TRIGGER = "CREATE TRIGGER t AFTER INSERT ON summaries BEGIN DELETE FROM summaries; END"


@pytest.mark.parametrize("foreign", [(ENDLESS,), (cache.TABLE, TRIGGER), (cache.TABLE, "CREATE TABLE mine (a)")])
def test_the_database_of_another_program_is_set_aside_unchanged(tmp_path: Path, foreign: tuple[str, ...]) -> None:
    with sqlite3.connect(tmp_path / FILE) as database:
        for statement in foreign:
            database.execute(statement)
    database.close()
    before = (tmp_path / FILE).read_bytes()
    kept = SummaryCache(tmp_path)
    assert not kept.files([FILE_OF_HOST])
    kept.put([SUMMARY], [PROGRAM])
    assert kept.files([FILE_OF_HOST]) and kept.programs(["ab"]) == {"ab": PROGRAM}
    assert (tmp_path / f"{FILE}.aside").read_bytes() == before


def test_damaged_pages_are_found_at_the_first_look(tmp_path: Path) -> None:
    kept = SummaryCache(tmp_path)
    kept.put([replace(SUMMARY, path=f"/log/{number}", problem="x" * 3000) for number in range(50)], [])
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    content = bytearray((tmp_path / FILE).read_bytes())
    content[20 * 4096 : 20 * 4096 + 2000] = b"\xff" * 2000
    (tmp_path / FILE).write_bytes(content)
    assert not SummaryCache(tmp_path).programs(["ab"])
    assert (tmp_path / f"{FILE}.aside").exists()
    assert SummaryCache(tmp_path).content().files == 0


def places(content: Any) -> Iterator[tuple[list[Any], int]]:
    """Yield each value of nested lists, as its list and index."""
    for index, value in enumerate(content):
        yield content, index
        if isinstance(value, list):
            yield from places(value)


@pytest.mark.parametrize("planted", ["text", 2**70, [[1]], {"a": 1}], ids=repr)
def test_a_value_of_another_type_is_missing_or_read_as_its_type(tmp_path: Path, planted: Any) -> None:
    SummaryCache(tmp_path).put([SUMMARY], [PROGRAM])
    with sqlite3.connect(tmp_path / FILE) as database:
        stored = {
            kind: json.loads(content) for kind, content in database.execute("SELECT kind, content FROM summaries")
        }
    database.close()
    for kind, content in stored.items():
        for values, index in list(places(content)):
            kept, values[index] = values[index], planted
            with sqlite3.connect(tmp_path / FILE) as database:
                change = "UPDATE summaries SET content = ? WHERE kind = ?"
                database.execute(change, (json.dumps(content), kind))
            database.close()
            values[index] = kept
            found = [
                *SummaryCache(tmp_path).files([FILE_OF_HOST]).values(),
                *SummaryCache(tmp_path).programs(["ab"]).values(),
            ]
            for summary in found:
                assert_types(summary)
            SummaryCache(tmp_path).put([SUMMARY], [PROGRAM])


def assert_types(summary: Any) -> None:
    for name, hint in get_type_hints(type(summary)).items():
        value = getattr(summary, name)
        if isinstance(value, tuple):
            for each in value:
                assert_types(each)
        else:
            assert type(value) is hint, (name, value)


def test_text_that_is_not_utf8_is_missing(tmp_path: Path) -> None:
    SummaryCache(tmp_path).put([SUMMARY], [PROGRAM])
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("UPDATE summaries SET content = CAST(x'ff' AS TEXT)")
    database.close()
    assert not SummaryCache(tmp_path).files([FILE_OF_HOST])
    SummaryCache(tmp_path).put([SUMMARY], [PROGRAM])
    assert SummaryCache(tmp_path).files([FILE_OF_HOST])


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = SummaryCache(tmp_path / "file")
    kept.put([SUMMARY], [PROGRAM])
    assert not kept.files([FILE_OF_HOST])
    assert kept.content()[1:4] == (0, 0, 0)


def test_a_locked_database_is_as_if_it_were_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SummaryCache(tmp_path).put([SUMMARY], [])
    monkeypatch.setattr(cache, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(tmp_path / FILE)
    other.execute("BEGIN EXCLUSIVE")
    SummaryCache(tmp_path).put([replace(SUMMARY, path="/log/b")], [])
    other.rollback()
    other.close()
    assert SummaryCache(tmp_path).content().files == 1


def test_the_oldest_go_when_it_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = SummaryCache(tmp_path, most=200_000)
    for n in range(30):
        monkeypatch.setattr("tb_memplugin.fleet.cache.time.time", lambda n=n: n)
        kept.put([replace(SUMMARY, path=f"/log/{n}-{m}", problem="x" * 1000) for m in range(20)], [])
    assert 0 < kept.content().bytes <= 200_000
    assert kept.files([FILE_OF_HOST._replace(path="/log/29-0")])
    assert not kept.files([FILE_OF_HOST._replace(path="/log/0-0")])


def test_clearing(tmp_path: Path) -> None:
    kept = SummaryCache(tmp_path)
    kept.put([SUMMARY], [PROGRAM])
    kept.clear()
    assert kept.content()[1:4] == (0, 0, 0) and not list(tmp_path.iterdir())


def test_folder_and_size_of_the_environment() -> None:
    assert SETTINGS.folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/tb_memplugin/fleet")
    assert SETTINGS.folder({"TB_MEMPLUGIN_FLEET_CACHE": "/y"}) == Path("/y")
    assert SETTINGS.bytes({"TB_MEMPLUGIN_FLEET_CACHE_SIZE": "1MiB"}) == 2**20
