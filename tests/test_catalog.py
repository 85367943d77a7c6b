"""The catalog: reads each file once, evicts on time, and survives damaged files."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest
from support.servers import DEMO

from tb_memplugin import logdir, readers
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.catalog import catalog as catalog_module
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import Listing, listing_of_path, read_file
from tb_memplugin.errors import InputError
from tb_memplugin.logdir import HostFile

PROFILE = DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return two runs, one of them with two hosts."""
    for path in ("a/plugins/profile/s/h.xplane.pb", "plugins/profile/b/x.xplane.pb", "plugins/profile/b/y.xplane.pb"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROFILE, tmp_path / path)
    return tmp_path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the files that were read."""
    paths: list[str] = []

    def counted(file: HostFile, run: str) -> Listing:
        paths.append(file.path)
        return read_file(file, run)

    monkeypatch.setattr(catalog_module, "read_file", counted)
    return paths


def test_each_file_is_read_once(logs: Path, opened: list[str]) -> None:
    catalog = Catalog(str(logs))
    for _ in range(2):
        listing = catalog.listing("b")
        assert {recording.host for recording in listing.recordings} == {"x", "y"}
        assert {recording.host for recording in catalog.listing("b", "x").recordings} == {"x"}
        first = listing.recordings[0]
        assert catalog.recording(first.id) is first
    assert len(opened) == 2


def test_a_changed_file_is_read_again(logs: Path, opened: list[str]) -> None:
    catalog = Catalog(str(logs))
    catalog.listing("a/s")
    os.utime(logs / "a/plugins/profile/s/h.xplane.pb", ns=(1, 1))
    catalog.listing("a/s")
    assert len(opened) == 2


def test_a_known_run_needs_no_walk(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog(str(logs))
    first = catalog.listing("b").recordings[0]
    monkeypatch.setattr(logdir, "find_all", lambda root: pytest.fail(f"walked {root}"))
    assert catalog.recording(first.id) is first
    assert {recording.host for recording in catalog.listing("b", "x").recordings} == {"x"}


def test_runs_come_and_go(logs: Path) -> None:
    catalog = Catalog(str(logs))
    catalog.runs()
    shutil.copytree(logs / "plugins/profile/b", logs / "plugins/profile/c")
    shutil.rmtree(logs / "plugins/profile/b")
    assert {recording.run for recording in catalog.listing("c").recordings} == {"c"}
    with pytest.raises(InputError, match="Unknown run"):
        catalog.listing("b")


def test_the_peak_of_a_run_is_known_from_its_reading_to_its_next_change(logs: Path) -> None:
    catalog = Catalog(str(logs), cache_bytes=1)  # recordings are not kept
    run, *others = catalog.runs()
    assert catalog.peak_bytes(run) is None
    largest = max(peak(recording).bytes for recording in catalog.listing(run.name).recordings)
    for other in others:
        catalog.listing(other.name)
    assert [catalog.peak_bytes(again) for again in catalog.runs() if again.name == run.name] == [largest]
    os.utime(run.files[0].path, ns=(1, 1))
    assert [catalog.peak_bytes(again) for again in catalog.runs() if again.name == run.name] == [None]


def test_memory_is_bounded(logs: Path, opened: list[str]) -> None:
    catalog = Catalog(str(logs), cache_bytes=1)
    for host in ("x", "x", "y", "x"):
        catalog.listing("b", host)
    assert [Path(path).name[0] for path in opened] == ["x", "y", "x"]


def test_two_requests_share_one_reading(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog(str(logs))
    reading, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def slow(file: HostFile, run: str) -> Listing:
        calls.append(file.path)
        reading.set()
        assert go_on.wait(timeout=60)
        return read_file(file, run)

    monkeypatch.setattr(catalog_module, "read_file", slow)
    listings: list[Listing] = []
    threads = [threading.Thread(target=lambda: listings.append(catalog.listing("a/s"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert reading.wait(timeout=60)
    go_on.set()
    for thread in threads:
        thread.join(timeout=60)
    assert len(calls) == 1
    assert len({id(listing.recordings[0]) for listing in listings}) == 1


def test_unknown_names_are_told_apart_from_damage(logs: Path) -> None:
    catalog = Catalog(str(logs))
    for question in (
        lambda: catalog.listing("none"),
        lambda: catalog.listing("../b"),
        lambda: catalog.listing("b", "none"),
        lambda: catalog.recording("b|x|none|HBM"),
        lambda: catalog.recording(""),
    ):
        with pytest.raises(InputError):
            question()


def test_several_logdirs_by_name(logs: Path) -> None:
    catalog = Catalog({"one": str(logs), "two": str(DEMO), "gone": str(logs / "gone")})
    names = [run.name for run in catalog.runs()]
    assert {"one/b", "one/a/s", "two/train_step/cpu"} <= set(names)
    recording = catalog.listing("two/train_step/cpu").recordings[0]
    assert catalog.recording(recording.id) is recording
    with pytest.raises(InputError):
        Catalog({}).runs()


def test_a_remote_logdir() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/shelf/logs/plugins/profile/s/h.xplane.pb", PROFILE.read_bytes())
    catalog = Catalog("memory://shelf/logs")
    local = listing_of_path(str(PROFILE)).recordings[0]
    first = catalog.listing("s").recordings[0]
    assert (first.title, first.host, len(first.allocations)) == (local.title, "h", len(local.allocations))
    assert catalog.recording(first.id) is first
    memory.pipe("/shelf/logs/plugins/profile/s/h.xplane.pb", b"damaged since")
    assert [problem.file for problem in catalog.listing("s").problems] == [
        "memory:///shelf/logs/plugins/profile/s/h.xplane.pb"
    ]


def test_a_damaged_module_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = listing_of_path(str(PROFILE))
    parts = readers.open_file(PROFILE.read_bytes(), str(PROFILE))
    lost = parts[0].title

    class Broken:
        title = lost

        def read(self) -> None:
            raise IndexError("no such instruction")

    monkeypatch.setattr(readers, "open_file", lambda *_, **__: [Broken(), *parts[1:]])
    listing = listing_of_path(str(PROFILE))
    assert {r.title for r in listing.recordings} == {r.title for r in whole.recordings} - {lost}
    [problem] = listing.problems
    assert problem.file == str(PROFILE)
    assert lost in problem.text


@pytest.mark.parametrize("inside", ["", "train_step", "train_step/plugins/profile/cpu", str(PROFILE)])
def test_a_path_may_be_a_logdir_a_run_or_a_file(inside: str) -> None:
    titles = {recording.title for recording in listing_of_path(str(DEMO / inside)).recordings}
    assert "jit_train_step(0)" in titles
    assert ("jit_oom(0)" in titles) == (inside == "")


@pytest.mark.parametrize("path", ["none", "none.xplane.pb", "\0"])
def test_a_path_that_is_not_there(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError):
        listing_of_path(str(tmp_path / path))
