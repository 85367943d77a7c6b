"""The progress of reading: bytes read of how many, in a catalog, over the API and on a terminal."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest
from support.servers import DEMO
from werkzeug.test import Client

from tb_memplugin import logdir
from tb_memplugin.catalog import catalog as catalog_module
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import Listing, listing_of_path
from tb_memplugin.catalog.listing import read_file as read_now
from tb_memplugin.catalog.reading import BytesRead, Progress
from tb_memplugin.commands.support import terminal as on_terminal
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.logdir import HostFile, counting, files, remote_files

MIB = 1 << 20


def test_bytes_are_counted_while_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK_BYTES", MIB)
    path = tmp_path / "memory.prof"
    path.write_bytes(bytes(range(256)) * (10 << 10) + b"end")
    counts: list[int] = []
    with counting(counts.append):
        content = logdir.read_bytes(logdir.host_file(str(path)))
    assert bytes(content) == path.read_bytes()
    assert counts == [MIB, MIB, MIB // 2 + 3]
    logdir.read_bytes(logdir.host_file(str(path)))
    assert len(counts) == 3


def test_remote_bytes_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    monkeypatch.setattr(remote_files, "RANGE_BYTES", 10)
    monkeypatch.setattr(remote_files, "MIN_BYTES", 0)
    fsspec.filesystem("memory").pipe("/progress/memory.prof", bytes(range(25)))
    file = HostFile("memory://progress/memory.prof", "", 25, "")
    counts: list[int] = []
    with counting(counts.append):
        assert bytes(logdir.read_bytes(file)) == bytes(range(25))
    assert counts == [10, 10, 5]


def test_progress_of_a_path_ends_with_nothing_to_read() -> None:
    progress = Progress()
    seen: list[BytesRead] = []
    with progress.files("", []):
        listing = listing_of_path(str(DEMO / "train_step"), progress=progress)
        seen.append(progress.of_all())
    assert listing.recordings
    assert seen[0].read == seen[0].total == (DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb").stat().st_size
    assert progress.of_all() == BytesRead()


def test_the_api_answers_while_a_file_is_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(file: HostFile, run: str) -> Listing:
        started.set()
        assert go_on.wait(60)
        return read_now(file, run)

    monkeypatch.setattr(catalog_module, "read_file", slow)
    catalog = Catalog(str(DEMO / "train_step"))
    run = catalog.runs()[0].name
    client = Client(MemoryApp(catalog))
    ask = f"/api/progress?run={run}"
    assert json.loads(client.get(ask).data) == {"read_bytes": 0, "total_bytes": 0, "seconds": 0.0}
    remote_files = threading.Thread(target=catalog.listing, args=(run,))
    remote_files.start()
    try:
        assert started.wait(60)
        first, second = (json.loads(client.get(ask).data) for _ in range(2))
        assert first["total_bytes"] > 0 == first["read_bytes"]
        assert second["seconds"] > first["seconds"] > 0  # no answer is kept
    finally:
        go_on.set()
        remote_files.join(60)
    assert json.loads(client.get(ask).data)["total_bytes"] == 0


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_only_a_terminal_shows_it_and_is_clean_afterwards(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, written = Screen(terminal), threading.Event()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(on_terminal, "WAIT_SECONDS", 0.01)
    progress = Progress()
    with progress.files("", [HostFile("a", "", 3 * MIB, "")]), on_terminal.shown_on_terminal(progress):
        written.wait(0.3)
    text = screen.getvalue()
    assert ("Reading 0 B of 3.00 MiB, 0 s" in text) == terminal
    assert text.endswith(on_terminal.CLEAR) == terminal


def test_what_is_read_is_being_analyzed() -> None:
    assert on_terminal.progress_text(BytesRead(MIB, 3 * MIB, 2.2)) == "Reading 1.00 MiB of 3.00 MiB, 2 s"
    assert on_terminal.progress_text(BytesRead(3 * MIB, 3 * MIB, 4.6)) == "Analyzing 3.00 MiB, 5 s"
