"""Files that are truncated, rewritten or extended while they are read: an answer or a problem, and never a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.servers import DEMO

from tb_memplugin import logdir
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.logdir import files, parts

PROFILE = DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb"

TRUNCATED_AFTERWARDS = """
import os, sys
from tb_memplugin.catalog.listing import listing_of_path
[profile] = sys.argv[1:]
listing = listing_of_path(profile)
os.truncate(profile, 0)
for recording in listing.recordings:
    len(recording.allocations), len(recording.stacks.parent)
    if recording.program is not None:
        recording.program.values()
print("alive with", len(listing.recordings))
"""

TRUNCATED_MEANWHILE = """
import os, sys, threading, time
from tb_memplugin.catalog.catalog import Catalog
[root, profile] = sys.argv[1:]
content, done = open(profile, "rb").read(), threading.Event()
def write():
    while not done.is_set():
        with open(profile, "wb") as stream:
            for begin in range(0, len(content), len(content) // 4):
                stream.write(content[begin : begin + len(content) // 4])
                stream.flush()
        time.sleep(0.001)
threading.Thread(target=write).start()
catalog, read, end = Catalog(root), 0, time.monotonic() + float(sys.argv[3]) if sys.argv[3:] else time.monotonic() + 2
while time.monotonic() < end:
    listing = catalog.listing(catalog.runs()[0].name)
    for recording in listing.recordings:
        len(recording.allocations)
    read += 1
done.set()
print("alive after", read)
"""


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done
    return done.stdout


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins/profile/run"
    folder.mkdir(parents=True)
    copy = folder / PROFILE.name
    copy.write_bytes(PROFILE.read_bytes())
    return copy


def test_a_profile_truncated_after_it_was_listed(profile: Path) -> None:
    assert run(TRUNCATED_AFTERWARDS, profile).startswith("alive with")


def test_a_profile_that_is_written_again_and_again_while_it_is_read(tmp_path: Path, profile: Path) -> None:
    assert run(TRUNCATED_MEANWHILE, tmp_path, profile).startswith("alive after")


class Written:
    """A file whose content changes between its first and its second half, as the reader sees them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, change: object) -> None:
        real, self.calls = os.fstat, 0

        def fstat(descriptor: int) -> os.stat_result:
            found = real(descriptor)
            self.calls += 1
            if self.calls == 1:
                change()  # type: ignore[operator]
            return found

        monkeypatch.setattr(os, "fstat", fstat)


def test_a_file_that_becomes_shorter_while_it_is_read_may_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.prof"
    path.write_bytes(bytes(1000))
    file = logdir.host_file(str(path))
    Written(monkeypatch, lambda: os.truncate(path, 10))
    with pytest.raises(ReadError, match="changed while it was read"):
        logdir.read_bytes(file)


def test_a_file_that_grows_while_it_is_read_is_read_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.prof"
    path.write_bytes(b"begin")
    file = logdir.host_file(str(path))

    def append() -> None:
        with path.open("ab") as stream:
            stream.write(b" and more")

    Written(monkeypatch, append)
    assert bytes(logdir.read_bytes(file)) == b"begin"


def test_a_sparse_file_larger_than_memory_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.prof"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(ReadError, match="not enough memory"):
        logdir.read_bytes(logdir.host_file(str(path)))
    [problem] = listing_of_path(str(path)).problems
    assert "TiB" in problem.text


def test_a_file_larger_than_any_protocol_buffer_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.hlo.pb"
    path.touch()
    os.truncate(path, 3 << 30)
    [problem] = listing_of_path(str(path)).problems
    assert problem.text.startswith("too large for compiled program: 3.00 GiB")


def test_a_file_of_zeros_is_no_profile(tmp_path: Path) -> None:
    for name in ("a.hlo.pb", "a.prof", "a.xplane.pb"):
        (tmp_path / name).write_bytes(bytes(1000))
        [problem] = listing_of_path(str(tmp_path / name)).problems
        assert "at byte 0" in problem.text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.prof"
    os.mkfifo(path)
    with pytest.raises(InputError, match="a pipe or a device"):
        logdir.read_bytes(logdir.host_file(str(path)))


def test_a_failure_of_the_disk_is_no_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.prof"
    path.write_bytes(b"content")
    file = logdir.host_file(str(path))

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(files, "_open", refuse)
    with pytest.raises(ReadError, match="Permission denied"):
        logdir.read_bytes(file)


def test_of_a_log_of_any_size_a_beginning_and_the_end_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_SEARCHED_BYTES", 64 << 20)
    path = tmp_path / "train.oom.txt"
    path.touch()
    os.truncate(path, 1 << 40)  # sparse, as a test cannot write as much
    with path.open("ab") as stream:
        stream.write(b"\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    [recording] = listing_of_path(str(path)).recordings
    assert "only_end_read" in {caveat.code for caveat in recording.caveats}
