"""Remote logdirs that are listed at once: the same runs as by walking through their folders."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers import DEMO

from tb_memplugin import logdir
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.catalog.reading import BytesRead, Progress
from tb_memplugin.errors import InputError
from tb_memplugin.logdir import folders, names
from tb_memplugin.logdir.files import Entry

ODD = (
    "train/plugins/profile/s/a.xplane.pb",
    "train/plugins/profile/s/b.xplane.pb",
    "train/plugins/profile/s/notes.txt",
    "train/plugins/profile/s/deeper/memory.prof",
    "plugins/profile/top/a.xplane.pb",
    "plugins/other/memory.prof",
    "dump/module_0001.jit_f.after_optimizations.hlo.pb",
    "dump/module_0001.jit_f/topology.pb",
    "dump/module_0002.jit_g.before_optimizations.hlo.pb",
    "checkpoints/1/2/3/4/weights.bin",
    "marker/",
    "name.prof/inside.prof",
    "fit/fit.json",
    "with space/ü/memory#1.prof",
    "a.xplane.pb",
)
PARTS = st.sampled_from(["plugins", "profile", "s", "a.xplane.pb", "m.prof", "x.hlo.pb", "fit.json", "b", "z.txt"])


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    yield
    fsspec.filesystem("memory").store.clear()
    fsspec.filesystem("memory").pseudo_dirs[:] = [""]


def runs(walking: bool) -> list[logdir.Run]:
    with pytest.MonkeyPatch.context() as patch:
        if walking:
            patch.setattr(names, "FLAT_STORES", frozenset())
        return logdir.find_all("memory://odd/logs")


def put(*paths: str) -> None:
    for path in paths:
        fsspec.filesystem("memory").pipe(f"/odd/logs/{path}", b"x")


def test_runs_of_an_odd_tree_are_those_found_by_walking() -> None:
    put(*ODD)
    assert len(runs(walking=True)) == 9
    assert runs(walking=False) == runs(walking=True)


@given(st.lists(st.lists(PARTS, min_size=1, max_size=6).map("/".join), min_size=1, max_size=8))
def test_runs_of_any_tree_are_those_found_by_walking(paths: list[str]) -> None:
    system = fsspec.filesystem("memory")
    system.store.clear()
    put(*(path for path in paths if not any(other.startswith(f"{path}/") for other in paths)))
    assert runs(walking=False) == runs(walking=True)


def test_a_run_of_a_listed_logdir_is_found_again_and_read() -> None:
    put(*ODD)
    for run in runs(walking=False):
        assert logdir.list_again(run) == (run if run.files else None)
        for file in run.files:
            assert file.stages or bytes(logdir.read_bytes(file)) == b"x"


@pytest.mark.parametrize("name", ["odd/logs/a.xplane.pb", "odd/other", "odd/log"])
def test_a_file_or_a_folder_that_is_missing_is_no_logdir(name: str) -> None:
    put(*ODD)
    with pytest.raises(InputError, match="does not exist"):
        logdir.find_all(f"memory://{name}")
    assert not logdir.has_runs(f"memory://{name}")


def test_a_store_that_lists_for_too_long_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.exceptions import FSTimeoutError
    from fsspec.implementations.memory import MemoryFileSystem

    def find(*_: object, **__: object) -> None:
        raise FSTimeoutError

    put(*ODD)
    monkeypatch.setattr(MemoryFileSystem, "find", find)
    assert len(runs(walking=False)) == 9


def test_looking_for_any_run_stops_at_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the folders of one run are listed, of a hundred."""
    listed: list[str] = []
    real = folders._list

    def counted(system: object, folder: str) -> list[Entry]:
        listed.append(folder)
        return real(system, folder)

    monkeypatch.setattr(folders, "_list", counted)
    put(*(f"run_{number:02d}/plugins/profile/s/a.xplane.pb" for number in range(100)))
    assert logdir.has_runs("memory://odd/logs")
    assert [path.removeprefix("/odd/logs") for path in listed] == [
        "", "/run_00", "/run_00/plugins", "/run_00/plugins/profile", "/run_00/plugins/profile/s",
    ]  # fmt: skip


def test_a_first_run_behind_many_folders_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_memplugin.logdir.runs.FIRST_FOLDERS", 3)
    put(*(f"checkpoints_{number}/weights" for number in range(10)), "z/plugins/profile/s/a.xplane.pb")
    assert logdir.has_runs("memory://odd/logs")


def test_a_run_of_many_hosts_is_read_side_by_side_and_a_damaged_host_costs_only_itself() -> None:
    profile = (DEMO / "oom/plugins/profile/cpu/localhost.xplane.pb").read_bytes()
    system = fsspec.filesystem("memory")
    for host in range(8):
        system.pipe(f"/odd/logs/plugins/profile/s/{host}.xplane.pb", b"damaged" if host == 3 else profile)
    seen: list[BytesRead] = []
    progress = Progress()
    with progress.files("", []):
        listing = listing_of_path("memory://odd/logs", progress=progress)
        seen.append(progress.of_all())
    assert [problem.file for problem in listing.problems] == ["memory:///odd/logs/plugins/profile/s/3.xplane.pb"]
    assert {recording.host for recording in listing.recordings} == set("0124567")
    assert seen[0].read == seen[0].total == 7 * len(profile) + len(b"damaged")


def test_the_folder_of_a_remote_run_is_not_listed_to_know_what_a_request_reads() -> None:
    for host in range(2):
        put(f"plugins/profile/s/{host}.xplane.pb")
    catalog = Catalog("memory://odd/logs")
    catalog.runs()
    assert catalog.unread_bytes("s") is None
