"""Runs of many hosts: those that are read host by host, and what is listed of them without one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.servers import DEMO

from benchmarks.pods.pod import Pod
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts import sources
from tb_memplugin.hosts.sources import catalog_source
from tb_memplugin.logdir import HostFile, read_content
from tb_memplugin.questions.asking.source import Source
from tb_memplugin.questions.run.overview import overview_of_run
from tb_memplugin.questions.run.runs import recordings, runs

PROFILE = DEMO / "device_profile" / "memory.prof"
COUNT = 20


def source(path: Path, folder: str, name: str) -> Source:
    (path / folder).mkdir(parents=True)
    for number in range(COUNT):
        shutil.copy(PROFILE, path / folder / f"{name}{number}.prof")
    return catalog_source(Catalog(str(path)))


@pytest.fixture
def large_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MANY_BYTES", 10 * PROFILE.stat().st_size)


@pytest.mark.usefixtures("large_files")
def test_the_first_hosts_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = source(tmp_path, "pod", "w-")
    read: list[str] = []
    monkeypatch.setattr("tb_memplugin.catalog.listing.logdir.read_content", _counting(read))
    (run,) = runs(found.runs)["runs"]
    assert run["by_host"] and run["hosts"] == [f"w-{number}" for number in range(COUNT)]
    listed = recordings(found.runs, "pod", "")
    assert {each["host"] for each in listed["recordings"]} == set(run["hosts"][:16]) and listed["has_fleet"]
    assert listed["notes"] == [
        "Only the first 16 of 20 hosts are read here, as reading all takes long. "
        "The Fleet tab finds the worst device of all."
    ]
    assert len(overview_of_run(found.runs, "pod")["rows"]) == 16 == len(read)
    (chosen,) = recordings(found.runs, "pod", "w-18")["recordings"]
    assert chosen["host"] == "w-18" and len(read) == 17
    assert runs(found.runs)["runs"][0]["peak_bytes"] is None, "the peak of some hosts is not that of the run"


def test_small_files_are_all_listed(tmp_path: Path) -> None:
    found = source(tmp_path, "pod", "w-")
    assert not runs(found.runs)["runs"][0]["by_host"]
    listed = recordings(found.runs, "pod", "")
    assert len(listed["recordings"]) == COUNT and listed["notes"] == []


@pytest.mark.usefixtures("large_files")
def test_snapshots_of_one_process_are_all_listed(tmp_path: Path) -> None:
    found = source(tmp_path, "device_profiles/2026_11_23_10_00_00_node7_4711", "memory_")
    (run,) = runs(found.runs)["runs"]
    listed = recordings(found.runs, run["name"], "")
    assert not run["by_host"] and len(listed["recordings"]) == COUNT and not listed["has_fleet"]


def test_sessions_of_a_capture_are_counted(tmp_path: Path) -> None:
    for folder in ("2026_11_23_10_00_00", "2026_11_23_10_00_07", "2026_11_24_10_00_00"):
        host = tmp_path / "pod/plugins/profile" / folder / f"{folder[-2:]}.prof"
        host.parent.mkdir(parents=True)
        shutil.copy(PROFILE, host)
    found = catalog_source(Catalog(str(tmp_path)))
    counted = {run["name"].rpartition("/")[2]: run["sessions"] for run in runs(found.runs)["runs"]}
    assert counted == {"2026_11_23_10_00_00": 2, "2026_11_23_10_00_07": 2, "2026_11_24_10_00_00": 1}


def test_a_pasted_file_has_no_fleet(tmp_path: Path) -> None:
    Pod(1, 2, 0.5).write(tmp_path)
    found = catalog_source(Catalog(str(tmp_path)))
    (run,) = runs(found.runs)["runs"]
    assert recordings(found.runs, run["name"], "")["has_fleet"]
    content = next(tmp_path.rglob("*.xplane.pb")).read_bytes()
    pasted = found.uploads.open_file("key", "dropped.xplane.pb", len(content), 0, content).run
    listed = recordings(found.runs, pasted, "")
    assert len(listed["recordings"]) > 1 and not listed["has_fleet"], "api/fleet is of the logdir"


def _counting(read: list[str]) -> Callable[[HostFile], object]:
    def counted(file: HostFile) -> object:
        read.append(file.host)
        return read_content(file)

    return counted
