"""Runs that are of several hosts or devices, by the rules of the fleet's answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.servers import DEMO

from benchmarks.pods.pod import Pod
from tb_memplugin.analysis.fleet.answer import FleetAnswer
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.executors import LocalProcesses
from tb_memplugin.fleet.scan import Scan, has_several
from tb_memplugin.fleet.sessions import captures
from tb_memplugin.logdir import find_runs

PROFILES = DEMO / "device_profile_leak"
FOLDER = "device_profiles/2026_11_23_10_00_00_process_0_node7_4711"


def write(folder: Path, names: list[str]) -> Path:
    folder.mkdir(parents=True)
    for number, name in enumerate(names, 1):
        shutil.copy(PROFILES / f"memory{number}.prof", folder / name)
    return folder


def as_fleet(path: Path) -> bool:
    """Return whether the fleet's answer has several hosts or devices."""
    processes = LocalProcesses(1)
    try:
        (fleet,) = Scan(lambda: processes).fleets(captures(find_runs(str(path))))
    finally:
        processes.stop()
    return len(fleet.hosts) > 1 or any(len(memory.peaks.devices) > 1 for memory in FleetAnswer(fleet).memories)


@pytest.mark.parametrize(
    ("folder", "names", "expected"),
    [
        ("log", [f"memory{number}.prof" for number in range(1, 7)], False),  # one process: its bytes rise
        ("log", [f"rank{number}.prof" for number in range(1, 7)], True),
        ("log", ["a b.prof", "c d.prof"], True),
        ("log", ["memory1.prof"], False),
        (FOLDER, ["memory_1.prof", "other.prof"], False),  # the folder of a process
    ],
)
def test_hosts_are_those_of_the_fleet(tmp_path: Path, folder: str, names: list[str], expected: bool) -> None:
    path = write(tmp_path / folder, names)
    (run,) = find_runs(str(tmp_path))
    assert has_several(run, listing_of_path(str(path)).recordings) is expected
    assert as_fleet(tmp_path) is expected


def test_a_file_that_cannot_be_read_is_a_host(tmp_path: Path) -> None:
    path = write(tmp_path / "log", ["rank1.prof"])
    (path / "rank2.prof").write_bytes(b"damaged")
    (run,) = find_runs(str(path))
    listing = listing_of_path(str(path))
    assert listing.problems and has_several(run, listing.recordings) and as_fleet(path)


@pytest.mark.parametrize(("devices", "expected"), [(1, False), (2, True)])
def test_devices_are_compared(tmp_path: Path, devices: int, expected: bool) -> None:
    Pod(1, devices, 0.5).write(tmp_path)
    (run,) = find_runs(str(tmp_path))
    assert has_several(run, listing_of_path(str(tmp_path)).recordings) is expected
    assert as_fleet(tmp_path) is expected
