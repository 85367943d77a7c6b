"""Fleets of generated pods, whose truth is known."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path
from typing import Any

import fsspec
import pytest
from support.in_process import InProcess

from benchmarks.pods.pod import Pod
from benchmarks.pods.ranks import write_ranks
from benchmarks.pods.truth import Capture as Truth
from benchmarks.pods.truth import Faults
from tb_memplugin.analysis.fleet.answer import FleetAnswer
from tb_memplugin.analysis.linking import stack_of_program
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.fleet.cache import FILE, SummaryCache
from tb_memplugin.fleet.scan import Scan
from tb_memplugin.fleet.sessions import captures
from tb_memplugin.fleet.summarize import STACK
from tb_memplugin.logdir import find_runs
from tb_memplugin.model.fleet import Fleet

FAULTS = Faults(outliers=1, leaks=1, missing=2, damaged=3, other_programs=1)


def fleet_of(logdir: Path, executor: InProcess | None = None, cache: SummaryCache | None = None) -> Fleet:
    (capture,) = captures(find_runs(str(logdir)))
    return Scan(lambda: executor or InProcess(), cache).fleet(capture)


def peaks(fleet: Fleet) -> Mapping[tuple[str, str], int]:
    return {(device.host, device.summary.device): device.summary.peak_bytes for device in fleet.devices}


def true_peaks(truth: Truth) -> Mapping[tuple[str, str], int]:
    return {(device.host, device.memory): device.peak_bytes for device in truth.devices}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    logdir = tmp_path_factory.mktemp("pod")
    return logdir, Pod(24, 2, 0.5, faults=FAULTS, skew_seconds=9).write(logdir)


def test_stacks_are_named_as_in_one_file(faulty: tuple[Path, Truth]) -> None:
    logdir, _ = faulty
    fleet = fleet_of(logdir)
    by_host = {file.path: listing_of_path(file.path).recordings for file in fleet.files[:2]}
    checked = [device for device in fleet.devices if device.path in by_host]
    assert len(checked) == 4
    for device in checked:
        recordings = by_host[device.path]
        (recording,) = (each for each in recordings if each.memory == device.summary.device)
        programs = [each for each in recordings if each.kind.has_program]
        found, position = stack_of_program(recording, programs), peak(recording).position
        title = programs[found.program[position]].title.partition("(")[0]
        sizes = {site.text: site.bytes for site in device.summary.sites}
        assert sizes[f"{STACK} {title}"] == found.stack[position] > 0
        assert sum(sizes.values()) + device.summary.other_bytes == device.summary.peak_bytes
        assert UNEXPLAINED not in sizes


def test_each_fault_is_found_and_named(faulty: tuple[Path, Truth]) -> None:
    logdir, truth = faulty
    answer = FleetAnswer(fleet_of(logdir))
    fleet = answer.fleet
    assert peaks(fleet) == true_peaks(truth)
    assert {session.name.rpartition("/")[2] for session in fleet.sessions} == set(truth.sessions)
    assert list(fleet.missing) == truth.missing
    assert {file.host for file in answer.problems} == set(truth.damaged)
    (memory,), (planted,) = answer.memories, truth.outliers
    (outlier,) = memory.peaks.outliers
    assert (outlier.host, outlier.summary.device) == (planted.host, planted.memory)
    (cause,) = memory.causes(outlier)
    assert cause.text == f"{planted.source_line} {planted.function}"
    assert 0 <= cause.bytes - planted.bytes < 512 and cause.hosts == 1
    (leak,) = answer.leaks
    assert {(device.host, device.summary.device) for device in leak.devices} == {
        (each.host, each.memory) for each in truth.leaks
    }
    assert (leak.site, leak.bytes) == (f"{truth.leaks[0].source_line} {truth.leaks[0].function}", truth.leaks[0].bytes)
    assert [other.host for other in answer.other_programs] == truth.other_programs
    assert len(answer.programs) == truth.programs


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_none_is_invented_on_a_healthy_pod(tmp_path: Path, seed: int) -> None:
    Pod(12, 4, 0.5, seed=seed, skew_seconds=5).write(tmp_path)
    answer = FleetAnswer(fleet_of(tmp_path))
    (memory,) = answer.memories
    assert not memory.peaks.outliers and not memory.causes(memory.peaks.worst)
    assert not (answer.leaks or answer.other_programs or answer.problems or answer.fleet.missing)


@pytest.mark.parametrize("suffix", [".prof", ".pickle"])
def test_a_file_for_each_rank(tmp_path: Path, suffix: str) -> None:
    truth = write_ranks(Pod(12, faults=Faults(outliers=1, missing=1, damaged=2)), tmp_path, suffix)
    answer = FleetAnswer(fleet_of(tmp_path))
    assert peaks(answer.fleet) == true_peaks(truth)
    assert list(answer.fleet.missing) == truth.missing
    assert {file.host for file in answer.problems} == set(truth.damaged)
    (memory,), (planted,) = answer.memories, truth.outliers
    assert [device.host for device in memory.peaks.outliers] == [planted.host]
    assert memory.causes(memory.peaks.worst)[0].text == f"{planted.source_line} {planted.function}"


def test_each_distinct_program_is_read_once(faulty: tuple[Path, Truth]) -> None:
    executor = InProcess()
    fleet_of(faulty[0], executor)
    assert executor.functions.count("read_programs") == faulty[1].programs == 2
    assert executor.functions.count("summarize_files") == 22


def test_a_second_look_reads_nothing_again(faulty: tuple[Path, Truth], tmp_path: Path) -> None:
    cache, executor = SummaryCache(tmp_path), InProcess()
    first = fleet_of(faulty[0], cache=cache)
    assert fleet_of(faulty[0], executor, cache) == first
    assert not executor.functions


def test_only_a_changed_file_is_read_again(tmp_path: Path) -> None:
    Pod(4, 1, 0.5).write(tmp_path / "log")
    cache, executor = SummaryCache(tmp_path / "cache"), InProcess()
    fleet_of(tmp_path / "log", cache=cache)
    changed = sorted((tmp_path / "log").rglob("*.xplane.pb"))[1]
    os.utime(changed, (1, 1))
    fleet_of(tmp_path / "log", executor, cache)
    assert executor.functions == ["summarize_files"]


def test_programs_that_the_cache_has_lost_are_read_again(tmp_path: Path) -> None:
    Pod(4, 1, 0.5).write(tmp_path / "log")
    cache, executor = SummaryCache(tmp_path / "cache"), InProcess()
    first = fleet_of(tmp_path / "log", cache=cache)
    with sqlite3.connect(tmp_path / "cache" / FILE) as database:
        database.execute("DELETE FROM summaries WHERE kind = 'program'")
    database.close()
    assert fleet_of(tmp_path / "log", executor, cache) == first
    assert executor.functions == ["read_programs"]


class Broken(InProcess):
    """An executor whose tasks fail."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return super().submit(fail)


class TogetherBroken(InProcess):
    """An executor whose process dies of several files at a time."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        if isinstance(arguments[0], list) and len(arguments[0]) > 1:
            return super().submit(end_process)
        return super().submit(function, *arguments, **named)


def end_process() -> None:
    raise BrokenExecutor


def test_a_remote_file_does_not_fail_those_that_are_read_with_it(tmp_path: Path) -> None:
    Pod(9, 1, 0.5).write(tmp_path)
    store = fsspec.filesystem("memory")
    store.put(f"{tmp_path}/", "/fleet", recursive=True)
    try:
        (capture,) = captures(find_runs("memory://fleet"))
        executor: InProcess = TogetherBroken()
        fleet = Scan(lambda: executor).fleet(capture)
    finally:
        store.rm("/fleet", recursive=True)
    assert len(fleet.devices) == 9 and not any(file.problem for file in fleet.files)
    assert executor.functions.count("end_process") == 2
    assert executor.functions.count("summarize_files") == 9


def fail() -> None:
    raise MemoryError


def test_a_host_that_fails_is_a_row_with_its_reason_and_is_not_cached(tmp_path: Path) -> None:
    Pod(3, 1, 0.5).write(tmp_path / "log")
    cache = SummaryCache(tmp_path / "cache")
    broken = fleet_of(tmp_path / "log", Broken(), cache)
    assert [(file.host[-1], file.problem[:17]) for file in broken.files] == [(n, "not enough memory") for n in "012"]
    assert not any(file.problem for file in fleet_of(tmp_path / "log", cache=cache).files)
