"""Large profiles of which only the needed parts are read: the same answers as of the whole file, with fewer bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import fsspec
import numpy as np
import pytest
from support.contents import contents
from support.servers import DATA, DEMO

from tb_memplugin.catalog.listing import Listing, listing_of_content, read_file, with_times
from tb_memplugin.errors import ReadError
from tb_memplugin.logdir import HostFile, files, host_file, parts, read_content, remote_files
from tb_memplugin.protos.xplane_pb2 import XSpace
from tb_memplugin.readers.xplane import needed

PROFILES = sorted([*DEMO.rglob("*.xplane.pb"), *DATA.glob("xplane/**/*.xplane.pb")])
URL = "memory://parts/h.xplane.pb"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Skip lines of real profiles of a megabyte, as of larger ones."""
    monkeypatch.setattr(needed, "MIN_SKIPPED_BYTES", 300)
    monkeypatch.setattr(parts, "BLOCK_BYTES", 256)
    monkeypatch.setattr(parts, "MAX_ROUNDS", 10_000)
    monkeypatch.setattr(remote_files, "MIN_BYTES", 0)
    monkeypatch.setattr(files, "MIN_BYTES", 0)
    yield
    with suppress(FileNotFoundError):  # of tests of local files
        fsspec.filesystem("memory").rm("/parts", recursive=True)


def remote(content: bytes) -> HostFile:
    fsspec.filesystem("memory").pipe("/parts/h.xplane.pb", content)
    return HostFile(URL, "h", len(content), "")


def whole(content: bytes) -> Listing:
    return with_times(remote(content), listing_of_content(remote(content), "run", content))


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.parts[-5])
def test_answers_are_those_of_the_whole_file(path: Path) -> None:
    content = path.read_bytes()
    assert contents(read_file(remote(content), "run")) == contents(whole(content))


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.parts[-5])
def test_of_a_local_file_the_same_parts_are_read(path: Path) -> None:
    remote(content := path.read_bytes())
    file = HostFile(str(path), "h", len(content), "")
    assert bytes(read_content(file)[0]) == bytes(read_content(remote(content))[0])


def test_a_local_file_that_changes_between_parts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(space().SerializeToString())
    file, fetch = host_file(str(path)), files.LocalFile.fetch

    def rewritten(self: files.LocalFile, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        path.write_bytes(b"\x0a\x00")
        return fetch(self, ranges)

    monkeypatch.setattr(files.LocalFile, "fetch", rewritten)
    with pytest.raises(ReadError, match="changed while it was read"):
        read_content(file)


def lines(content: bytes | memoryview) -> dict[str, dict[str, int]]:
    """Return the numbers of events, by plane and line."""
    planes = XSpace.FromString(bytes(content)).planes
    return {plane.name.decode(): {line.name.decode(): len(line.events) for line in plane.lines} for plane in planes}


def space() -> XSpace:
    """Return a profile whose device has long lines, of which one is needed."""
    made = XSpace()
    for plane_name in ("/host:CPU", "/device:TPU:0", "/device:TPU:1", "/device:CUSTOM:x"):
        plane = made.planes.add(name=plane_name.encode())
        plane.event_metadata[1].name = b"jit_f(1)"
        for line_name in ("XLA Modules", "XLA Ops", "empty"):
            line = plane.lines.add(name=line_name.encode(), timestamp_ns=5)
            for offset in range(0 if line_name == "empty" else 100):
                line.events.add(metadata_id=1, offset_ps=offset * 1000, duration_ps=1000)
    return made


def test_long_lines_are_left_out_but_for_executions_and_one_event() -> None:
    content = space().SerializeToString()
    read, begin = read_content(remote(content))
    assert begin == 0
    kept = lines(content)
    for plane in kept.values():
        plane["XLA Ops"] = 1
    assert lines(read) == kept
    assert len(read) < 0.6 * len(content)


def test_the_events_of_a_host_are_kept_where_any_is_of_an_allocator() -> None:
    made = space()
    made.planes[0].event_metadata[2].name = b"MemoryAllocation"
    content = made.SerializeToString()
    read, _ = read_content(remote(content))
    assert lines(read)["/host:CPU"] == lines(content)["/host:CPU"]
    assert lines(read)["/device:TPU:0"]["XLA Ops"] == 1


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.parts[-5])
def test_damaged_files_get_the_same_answers_or_those_of_a_file_without_the_damage(path: Path) -> None:
    """Check that damage at the top of a file, of a plane or of a line is reported as of the whole file."""
    content, random = path.read_bytes(), np.random.default_rng(5)
    for cut in (1, 10, 1000, len(content) // 2, len(content) - 1):
        assert contents(read_file(remote(content[:cut]), "run")) == contents(whole(content[:cut])), cut
    for at in (0, 1, 2, 5, 12, *random.integers(0, len(content), 10).tolist()):
        damaged = bytearray(content)
        damaged[at] ^= 1 << int(random.integers(8))
        found = read_file(remote(bytes(damaged)), "run")
        assert len(found.recordings) >= len(whole(bytes(damaged)).recordings), at


@pytest.mark.parametrize(
    "content", [b"", b"\x0a", b"\x0a\x05abc", b"\xff" * 40, b"\x0a\xff\xff\xff\xff\x0f", b"\x12\x01a"]
)
def test_files_without_the_structure_are_read_as_a_whole(content: bytes) -> None:
    assert bytes(read_content(remote(content))[0]) == content


def test_a_file_with_too_many_parts_is_read_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_ROUNDS", 2)
    content = space().SerializeToString()
    assert bytes(read_content(remote(content))[0]) == content


@pytest.mark.parametrize("order", ["name last", "no name", "name twice"])
def test_planes_in_another_order_lose_nothing(order: str) -> None:
    made = space().planes[1]
    body = made.SerializeToString()
    name = b"\x12" + bytes([len(made.name)]) + made.name
    at = body.index(name)
    without = body[:at] + body[at + len(name) :]
    plane = {"name last": without + name, "no name": without, "name twice": body + name}[order]
    content = XSpace().SerializeToString() + needed._head(needed.SPACE_PLANES, len(plane)) + plane
    read = bytes(read_content(remote(content))[0])
    assert order == "name twice" or read == content
    assert lines(read).keys() == lines(content).keys()
