"""Ranges of remote files: retried, counted, refused where the file changes, and replaced where a store has none."""

from __future__ import annotations

import pytest
from remote.stores import http_server, unsteady

from tb_memplugin import logdir
from tb_memplugin.catalog.listing import read_file
from tb_memplugin.errors import ReadError
from tb_memplugin.logdir import HostFile, counting, remote_files

CONTENT = bytes(range(250))
URL = "unsteady://bucket/memory.prof"


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_files, "RANGE_BYTES", 20)
    monkeypatch.setattr(remote_files, "AT_ONCE", 3)
    monkeypatch.setattr(remote_files, "WAIT_SECONDS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(remote_files, "MIN_BYTES", 0)


def file_of(content: bytes = CONTENT, url: str = URL) -> HostFile:
    return HostFile(url, "", len(content), "")


def test_ranges_that_fail_are_asked_for_again_and_counted_once() -> None:
    failures = [1, 2, 2, 5, 0]  # of each range; the third is a store that is away for longer

    def before(path: str, begin: int | None, end: int | None) -> None:
        row = (begin or 0) // 20
        if row < len(failures) and failures[row] > 0:
            failures[row] -= 1
            raise OSError("503 Slow Down")

    with unsteady(before) as store:
        store.pipe("/bucket/memory.prof", CONTENT)
        with pytest.raises(ReadError, match="Slow Down"):
            logdir.read_bytes(file_of())
        counts: list[int] = []
        with counting(counts.append):
            assert bytes(logdir.read_bytes(file_of())) == CONTENT
        assert sum(counts) == len(CONTENT)


def test_a_file_that_is_gone_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_files, "MIN_BYTES", 1000)
    asked: list[int | None] = []
    with unsteady(lambda path, begin, end: asked.append(begin)) as store:
        store.pipe("/bucket/memory.prof", CONTENT)
        file = file_of()
        described = HostFile(file.path, "", file.size, "a stamp")
        store.rm("/bucket/memory.prof")
        with pytest.raises(ReadError):
            logdir.read_bytes(described)
        assert asked == [0]


@pytest.mark.parametrize("changed", [CONTENT[::-1], CONTENT + b"more", CONTENT[:100], b""])
@pytest.mark.parametrize("range_bytes", [20, 1000])
def test_a_file_that_changes_between_ranges_is_refused(
    changed: bytes, range_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_files, "RANGE_BYTES", range_bytes)
    requests = 0

    def before(path: str, begin: int | None, end: int | None) -> None:
        nonlocal requests
        requests += 1
        if requests == 2 or range_bytes > len(CONTENT):
            store.pipe("/bucket/memory.prof", changed)

    with unsteady(before) as store:
        store.pipe("/bucket/memory.prof", CONTENT)
        with pytest.raises(ReadError, match="changed while it was read"):
            logdir.read_bytes(file_of())


@pytest.mark.parametrize("changed", [CONTENT + b"more", CONTENT[:100]])
def test_a_small_file_that_is_no_longer_as_it_was_listed_is_refused(
    changed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_files, "MIN_BYTES", 1000)
    asked: list[tuple[int | None, int | None]] = []
    with unsteady(lambda path, begin, end: asked.append((begin, end))) as store:
        store.pipe("/bucket/memory.prof", CONTENT)
        described = HostFile(URL, "", len(CONTENT), "a stamp")
        assert bytes(logdir.read_bytes(described)) == CONTENT
        assert bytes(logdir.read_bytes(described, 10)) == CONTENT[:10]
        assert asked == [(0, len(CONTENT) + 1), (0, 10)]
        store.pipe("/bucket/memory.prof", changed)
        with pytest.raises(ReadError, match="changed while it was read"):
            logdir.read_bytes(described)


def test_each_byte_of_a_remote_log_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from tb_memplugin import formats

    text = (
        b"x" * formats.OOM_TEXT_BYTES + b"\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    monkeypatch.setattr(remote_files, "RANGE_BYTES", 8 << 20)
    asked: list[int] = []
    with unsteady(lambda path, begin, end: asked.append((end or 0) - (begin or 0))) as store:
        store.pipe("/bucket/train.oom.txt", text)
        listing = read_file(file_of(text, "unsteady://bucket/train.oom.txt"), "")
    assert len(listing.recordings) == 1
    assert sum(asked) == len(text)


@pytest.mark.parametrize("with_ranges", [True, False])
def test_a_web_server_with_and_without_ranges(with_ranges: bool) -> None:
    with http_server({"/memory.prof": CONTENT}, ranges=with_ranges) as (url, asked):
        for size in (len(CONTENT), 0):  # a listing of a web server's folder has no sizes
            file = HostFile(f"{url}/memory.prof", "", size, "")
            assert bytes(logdir.read_bytes(file)) == CONTENT
            assert bytes(logdir.read_bytes(file, 10)) == CONTENT[:10]
    assert asked.count("bytes=0-0") == 4  # a server without ranges is found out before it sends a file eight times


def test_what_does_not_fit_in_memory_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from tb_memplugin import free_memory

    monkeypatch.setattr(free_memory, "SMALL_BYTES", 10)
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 300)
    asked: list[str] = []
    with unsteady(lambda path, begin, end: asked.append(path)) as store:
        store.pipe("/bucket/memory.prof", CONTENT)
        with pytest.raises(ReadError, match="not enough memory"):
            logdir.read_bytes(file_of())
        assert not asked
        assert len(logdir.read_bytes(file_of(), 100)) == 100
