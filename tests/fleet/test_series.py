"""Files of one process that were saved one after another, and files of ranks with similar names."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.in_process import InProcess
from support.pprof_files import Frame, Sample, Writer
from support.servers import DEMO

from tb_memplugin.analysis.fleet.answer import FleetAnswer
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.fleet.cache import SummaryCache
from tb_memplugin.fleet.scan import Scan
from tb_memplugin.fleet.series import Series, find_series
from tb_memplugin.fleet.sessions import captures
from tb_memplugin.logdir import HostFile, Run, find_runs
from tb_memplugin.model.fleet import DeviceSummary, FileSummary, Fleet
from tb_memplugin.model.kinds import NumberedFiles, RecordingKind

SECOND = 10**9


def found(
    names: Sequence[str],
    devices: Sequence[str] = ("cuda:0",),
    steps: Sequence[int] = (),
    times: Sequence[int] = (),
    modified: Sequence[int] = (),
    sizes: Sequence[int] = (),
    kind: RecordingKind = RecordingKind.DEVICE_PROFILE,
    folder: str = "/log/run",
    numbered: NumberedFiles = NumberedFiles.AUTO,
) -> list[Series]:
    """Return the series of files with one device each."""
    files = [
        HostFile(f"{folder}/{n}.prof", n, 1, "1-1", modified_ns=modified[at] if modified else SECOND)
        for at, n in enumerate(names)
    ]
    summaries = {}
    for at, file in enumerate(files):
        device = DeviceSummary(devices[at % len(devices)], "HBM", True, sizes[at] if sizes else 100)
        step, time_ns = steps[at] if steps else -1, times[at] if times else 0
        summaries[file.path] = FileSummary(
            file.path, 1, "1-1", file.host, "run", (device,), kind=kind, step=step, time_ns=time_ns
        )
    return find_series([Run("run", tuple(files), folder, "/log")], summaries, numbered)


def names(count: int, text: str = "memory{}") -> list[str]:
    return [text.format(number) for number in range(1, count + 1)]


def apart(count: int, pause: int = SECOND) -> list[int]:
    return [10**18 + number * pause for number in range(count)]


def test_steps_times_or_bytes_that_rise_are_evidence() -> None:
    assert [s.evidence for s in found(names(2), steps=[100, 200])] == ["their steps rise"]
    assert [s.evidence for s in found(names(3), times=apart(3))] == ["their times rise"]
    assert [s.evidence for s in found(names(3), modified=apart(3))] == ["their times rise"]
    assert [s.evidence for s in found(names(5), sizes=[1, 2, 3, 4, 5])] == ["their bytes rise"]
    snapshots = found(names(3), times=apart(3), kind=RecordingKind.TORCH_SNAPSHOT)
    assert [(s.name, s.evidence) for s in snapshots] == [("memory*", "their times rise")]


def test_files_are_in_order_of_their_numbers() -> None:
    (series,) = found(["memory10", "memory9", "memory8"], steps=[10, 9, 8])
    assert [member.file.host for member in series.members] == ["memory8", "memory9", "memory10"] and series.evidence


@pytest.mark.parametrize(
    "given",
    [
        {"steps": [100, 100, 100]},  # one file for each rank, at one step
        {"times": [10**18 + 5, 10**18 + 3, 10**18 + 9]},
        {"times": apart(3, 10**6)},  # as ranks save, or files are copied
        {"modified": [3 * SECOND, SECOND, 2 * SECOND]},
        {"modified": apart(3, 10**6)},
        {"modified": [10**18, 10**18, 10**18]},  # as in a clone of a repository
        {"sizes": [1, 2, 3]},  # too few
        {},
    ],
)
def test_without_evidence_each_file_is_a_host_and_that_is_stated(given: dict[str, Sequence[int]]) -> None:
    (series,) = found(names(3), **given)  # type: ignore[arg-type]
    assert (series.name, len(series.members), series.evidence) == ("memory*", 3, "")


def test_bytes_of_snapshots_are_no_evidence() -> None:
    (series,) = found(names(5), sizes=[1, 2, 3, 4, 5], kind=RecordingKind.TORCH_SNAPSHOT)
    assert not series.evidence


@pytest.mark.parametrize("text", ["rank{}", "memory_rank{}", "host-{}", "node{}_mem", "t1v-w-{}", "gpu{}", "Worker{}"])
def test_names_of_ranks_are_hosts(text: str) -> None:
    assert not found(names(9, text), times=apart(9), sizes=list(range(9)))


def test_devices_that_jax_numbers_over_all_processes_are_hosts() -> None:
    assert not found(names(4), devices=["cuda:0", "cuda:8", "cuda:16", "cuda:24"], times=apart(4))


def test_each_rank_has_a_series_of_its_own() -> None:
    both = [f"rank{rank}_step{step}" for rank in range(2) for step in (5, 6)]
    assert {s.name: s.evidence for s in found(both, steps=[5, 6] * 2)} == {
        "rank0_step*": "their steps rise",
        "rank1_step*": "their steps rise",
    }


def test_the_snapshot_at_an_error_is_of_the_same_process() -> None:
    pair = [f"rank{rank}_node_{40 + rank}{oom}" for rank in range(2) for oom in ("", ".oom")]
    assert [(s.name, s.evidence) for s in found(pair)] == [
        ("rank0_node_40", "their names are equal"),
        ("rank1_node_41", "their names are equal"),
    ]


def test_the_choice_of_a_user_decides() -> None:
    assert found(names(3), numbered=NumberedFiles.SERIES)[0].evidence == "--numbered-files"
    assert not found(names(3), steps=[1, 2, 3], numbered=NumberedFiles.HOSTS)


def scan(logdir: Path, executor: InProcess | None = None, cache: Path | None = None) -> Fleet:
    run = executor or InProcess()
    (capture,) = captures(find_runs(str(logdir)))
    return Scan(lambda: run, SummaryCache(cache) if cache else None).fleet(capture)


def test_a_series_is_one_host_with_its_largest_peak_and_its_growth(tmp_path: Path) -> None:
    logdir = DEMO / "device_profile_leak"
    executor = InProcess()
    fleet = scan(logdir, executor, tmp_path)
    (device,) = fleet.devices
    of_file = listing_of_path(str(logdir / "memory9.prof")).recordings
    assert fleet.hosts == ("memory*",) and not fleet.missing
    assert device.path.endswith("memory9.prof")
    assert device.recording_id.partition("|")[2] in {f"memory9|{r.title}|{r.memory}" for r in of_file}
    (leak,) = FleetAnswer(fleet).leaks
    assert (leak.site, leak.bytes, leak.unit) == ("make_device_profiles.py:52 anotherfunc", 240_000, "profile")
    assert executor.functions == ["summarize_files"] * 9 + ["read_growth"]
    again = InProcess()
    assert scan(logdir, again, tmp_path) == fleet and not again.functions


def profile(path: Path, step: int, sizes: dict[int, int], device: str = "cuda:0") -> None:
    """Write a device profile as capture.snapshot does, with an array for each line."""
    writer = Writer()
    for line, size in sizes.items():
        writer.add(Sample([Frame("f", "train.py", line)], size, device=device))
    note = "tb_memplugin " + json.dumps({"step": step, "devices": {}})
    writer.profile.comment.append(writer.text(note))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(writer.profile.SerializeToString()))


def test_processes_of_a_job_are_hosts_of_one_capture(tmp_path: Path) -> None:
    for process in range(3):
        folder = tmp_path / "device_profiles" / f"2026_11_23_04_00_0{process}_process_{process}_node_{70 + process}"
        for step in range(6):
            grown = {2: 1000 * (step + 1)} if process == 1 else {}
            profile(folder / f"memory_{step:08}.prof", step, {1: 5000, **grown}, f"cuda:{process}")
    fleet = scan(tmp_path)
    assert fleet.hosts == ("process_0_node_70", "process_1_node_71", "process_2_node_72")
    assert len(fleet.sessions) == 3
    assert [device.summary.peak_bytes for device in fleet.devices] == [5000, 11000, 5000]
    (leak,) = FleetAnswer(fleet).leaks
    assert (leak.site, leak.bytes, list(leak.hosts)) == ("train.py:2 f", 1000, ["process_1_node_71"])


def test_a_damaged_file_of_a_series_is_a_problem_and_no_host(tmp_path: Path) -> None:
    shutil.copytree(DEMO / "device_profile_leak", tmp_path / "run")
    (tmp_path / "run/memory4.prof").write_bytes(b"garbage")
    fleet = scan(tmp_path)
    assert fleet.hosts == ("memory*",) and len(fleet.devices) == 1
    (problem,) = FleetAnswer(fleet).problems
    assert problem.path.endswith("memory4.prof")


def test_copies_in_order_of_their_names_are_no_series(tmp_path: Path) -> None:
    for number in range(1, 7):
        profile(tmp_path / f"memory{number}.prof", -1, {1: 5000 + number % 2})
        os.utime(tmp_path / f"memory{number}.prof", ns=(0, 10**18 + number * 10**6))
    assert len(scan(tmp_path).hosts) == 6
