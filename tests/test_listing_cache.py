"""The cache of listings counts the memory that recordings hold, and keeps less than its limit."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.recordings import Row, recording
from werkzeug.test import Client

from benchmarks.generate import write
from tb_memplugin import logdir
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import Listing
from tb_memplugin.catalog.listing_cache import FileVersion, ListingCache, held_bytes
from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

MB = 10**6
# Reads each run, and asks what a user of the page asks; prints what the process grew by, and what the cache counts.
ASK_ALL = """
import json, sys
from urllib.parse import quote
from werkzeug.test import Client
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts.api import MemoryApp

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

catalog = Catalog(sys.argv[1], cache_bytes=int(sys.argv[2]))
client = Client(MemoryApp(catalog))
before, grown = None, []
for run in catalog.runs():
    recordings = client.get(f"/api/recordings?run={quote(run.name)}").json["recordings"]
    for recording in recordings:
        for route in ("memory_viewer", "rows", "advice", "tree?by=model"):
            mark = "&" if "?" in route else "?"
            assert client.get(f"/api/{route}{mark}id={quote(recording['id'])}").status_code == 200
    before = before or resident()
    grown.append(resident() - before)
print(json.dumps([max(grown), catalog._cache.nbytes]))
"""


def growth(root: Path, cache_bytes: int) -> tuple[int, int]:
    answer = subprocess.run(
        [sys.executable, "-c", ASK_ALL, str(root), str(cache_bytes)], check=True, capture_output=True, text=True
    ).stdout
    grown, counted = json.loads(answer)
    return grown, counted


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_server_grows_by_no_more_than_its_cache(tmp_path: Path) -> None:
    """With many runs of which each was looked at, and by what the cache counts where it has room for all."""
    profile, _ = write(tmp_path / "one", 8000)
    for number in range(24):
        session = tmp_path / f"log/run{number:02}/plugins/profile/s"
        session.mkdir(parents=True)
        shutil.copy(profile, session / "h.xplane.pb")
    free, counted = growth(tmp_path / "log", 1 << 30)
    assert counted > 60 * MB and free > 60 * MB
    assert free * 0.5 < counted < free * 2 + 10 * MB  # one run was read before the growth was measured
    bounded, counted = growth(tmp_path / "log", 20 * MB)
    assert counted <= 20 * MB
    assert bounded < free - 20 * MB


def test_a_view_counts_with_all_memory_that_it_keeps() -> None:
    whole = np.zeros(10 * MB, np.uint8)
    assert 10 * MB <= held_bytes([whole[:1]]) < 10 * MB + 1000
    assert 10 * MB <= held_bytes([whole[:1], whole[1:], {"a": whole}]) < 10 * MB + 2000
    assert 10 * MB <= held_bytes([np.frombuffer(memoryview(bytes(10 * MB))[5:6], np.uint8)]) < 10 * MB + 1000


def holding(data: object) -> list[Callable[[], object]]:
    def closure() -> object:
        return data

    def default(data: object = data) -> object:
        return data

    return [closure, default, partial(repr, data), Lazy(lambda: data), Lazy(partial(repr, data))]


@pytest.mark.parametrize("kind", range(5))
def test_what_is_yet_to_be_read_counts(kind: int) -> None:
    assert held_bytes([holding(bytes(MB))[kind]]) > MB


def test_what_a_process_shares_does_not_count() -> None:
    assert held_bytes([recording([Row(8, 0, 4)], 4)]) < 20_000


def version(name: str) -> FileVersion:
    return FileVersion(name, "1", "run")


def listing() -> Listing:
    return Listing([recording([Row(8, 0, 4)], 4)])


@memoize
def large_result(of: Recording) -> bytes:
    return bytes(2 * MB)


def test_results_that_are_computed_later_count_and_evict() -> None:
    cache = ListingCache(3 * MB)
    first, second = listing(), listing()
    cache.add(version("first"), first)
    cache.add(version("second"), second)
    large_result(first.recordings[0])
    large_result(second.recordings[0])
    assert cache.get(version("first")) is first and cache.nbytes > 2 * MB
    assert cache.get(version("second")) is second and cache.nbytes < 3 * MB
    assert cache.get(version("first")) is None
    assert not first.recordings[0].memo  # which may be in a cycle with its recording


def test_what_is_dropped_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "tb_memplugin.catalog.listing_cache")
    cache = ListingCache(MB)
    sizes = []
    for name in ("first", "second"):
        kept = listing()
        kept.recordings[0].memo[name] = np.zeros(MB, np.uint8)
        sizes.append(bytes_text(held_bytes([kept.recordings])))
        cache.add(FileVersion(f"/logs/{name}.xplane.pb", "1", "run"), kept)
    (record,) = caplog.records
    assert f"Dropped '/logs/first.xplane.pb', {sizes[0]}, since recordings may take 977 KiB" in record.getMessage()


def test_a_run_that_was_dropped_says_so_when_it_is_read_again(tmp_path: Path) -> None:
    profile, _ = write(tmp_path / "one", 2000)
    for name in ("first", "second"):
        (tmp_path / f"log/{name}/plugins/profile/s").mkdir(parents=True)
        shutil.copy(profile, tmp_path / f"log/{name}/plugins/profile/s/h.xplane.pb")
    client = Client(MemoryApp(Catalog(str(tmp_path / "log"), cache_bytes=1)))
    runs = ("first", "second", "first", "second")
    notes = [json.loads(client.get(f"/api/recordings?run={run}/s").data)["notes"] for run in runs]
    assert notes[:2] == [[], []]
    for (note,) in notes[2:]:
        assert note.startswith("Read again: 1 file (") and note.endswith("recordings may take 1 B of memory.")


def test_the_latest_listing_stays_whatever_its_size() -> None:
    cache, only = ListingCache(1), listing()
    cache.add(version("only"), only)
    assert cache.get(version("only")) is only


def test_what_was_read_of_files_that_are_gone_is_dropped(tmp_path: Path) -> None:
    write(tmp_path, 1000)
    catalog = Catalog(str(tmp_path))
    assert catalog.listing(catalog.runs()[0].name).recordings
    assert catalog._cache.nbytes > 0
    shutil.rmtree(tmp_path)
    with pytest.raises(InputError):
        catalog.runs()
    assert catalog._cache.nbytes == 0


@pytest.mark.parametrize(
    "failure",
    [
        ReadError("Cannot read the file", "file", "Permission denied"),
        MemoryError(),
        OSError("the network is down"),
        TimeoutError(),
    ],
    ids=["read", "memory", "network", "timeout"],
)
def test_a_failure_that_may_pass_is_not_kept(
    failure: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1000)
    catalog = Catalog(str(tmp_path))
    run = catalog.runs()[0].name

    def failing(file: HostFile) -> bytes:
        raise failure

    with monkeypatch.context() as broken:
        broken.setattr(logdir, "read_content", failing)
        problem, *_ = catalog.listing(run).problems
        assert problem.may_pass
    assert catalog.listing(run).recordings and not catalog.listing(run).problems


def test_damage_is_kept_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 1000)
    catalog = Catalog(str(tmp_path))
    run = catalog.runs()[0].name

    def damaged(file: HostFile) -> bytes:
        raise InputError("damaged", file.path, "copy it again")

    with monkeypatch.context() as broken:
        broken.setattr(logdir, "read_content", damaged)
        assert catalog.listing(run).problems
    assert catalog.listing(run).problems
