"""Trends over generated days, of which one has a change."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from programs.stored import FOLDER
from support.changed import changed_logdir
from support.in_process import InProcess
from support.pprof_files import Frame, Sample, write
from support.watch_files import MIB, saw_tooth, watch_bytes

from benchmarks.pods.pod import Pod, write_trend
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED
from tb_memplugin.fleet.scan import Scan
from tb_memplugin.fleet.sessions import captures
from tb_memplugin.fleet.summarize import use_of
from tb_memplugin.fleet.trend import changes_between, trend
from tb_memplugin.logdir import HostFile, find_runs
from tb_memplugin.logdir.files import host_file
from tb_memplugin.model.fleet import Rise, TrendChange
from tb_memplugin.model.kinds import TrendBy
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.fleet.trend import trend_answer
from tb_memplugin.questions.fleet.words import rise_text
from tb_memplugin.readers import open_file


@pytest.mark.slow
def test_short_answers_keep_the_newest_point(tmp_path: Path) -> None:
    write_trend(Pod(2, 1, 0.5), tmp_path, 7)
    found = trend(captures(find_runs(str(tmp_path))), Scan(InProcess))
    whole = trend_answer(found, Asked(str(tmp_path), None))["series"]
    for every, some in zip(whole, trend_answer(found, Asked(str(tmp_path)))["series"], strict=True):
        assert len(every["points"]) == 7
        assert some["points"][-1]["day"] == every["points"][-1]["day"]
        assert len(some["points"]) + some["omitted"]["points"] == 7  # type: ignore[typeddict-item]


@pytest.mark.slow
def test_the_day_and_the_line_that_raised_the_peak_are_named(tmp_path: Path) -> None:
    truth = write_trend(Pod(2, 1, 0.5), tmp_path, 6)
    found = trend(captures(find_runs(str(tmp_path))), Scan(InProcess))
    memory, program = found
    assert [point.day for point in memory.points] == [day.run for day in truth.days]
    assert [point.peak_bytes for point in memory.points] == [round(day.median_bytes) for day in truth.days]
    (rise,) = memory.rises
    assert memory.points[rise.after].day == truth.changed
    assert truth.source_line in rise.changes[0].text
    assert (rise.changes[0].bytes_before, rise.changes[0].bytes_after) == (0, truth.bytes)
    assert program.is_program
    assert [program.points[rise.after].day for rise in program.rises] == [truth.changed]


def test_days_without_a_change_have_no_rise(tmp_path: Path) -> None:
    Pod(2, 1, 0.5).write(tmp_path)
    (memory, program) = trend(captures(find_runs(str(tmp_path))), Scan(InProcess))
    assert not memory.rises and not program.rises
    assert len(memory.points) == 1


def test_a_program_that_grew_has_the_cause_beside_the_lines(tmp_path: Path) -> None:
    found = changes_between(stored_program("recomputed", tmp_path), stored_program("base", tmp_path), True)
    text = rise_text(Rise(0, 1, found.lines, causes=found.causes))
    assert text.startswith("`layer_*` saves one more activation (`f32[32768,1024]`, 3 layers, +226 MiB), with ")


def test_unrelated_programs_of_one_name_have_series_of_their_own(tmp_path: Path) -> None:
    """Name programs of three jobs alike. Two captures of one job have a source file in common."""
    jobs = {"lm_1": "lm_unrolled.h100", "vision": "resnet.h100", "lm_2": "lm_scanned.h100"}
    for age, (run, stored) in enumerate(jobs.items()):
        (tmp_path / run).mkdir()
        path = tmp_path / run / "jit_train_step.hlo.pb"
        path.write_bytes(gzip.decompress((FOLDER / f"{stored}.hlo.pb.gz").read_bytes()))
        os.utime(path, (10**9 + age, 10**9 + age))
    found = trend(captures(find_runs(str(tmp_path))), Scan(InProcess), by=TrendBy.CAPTURE)
    assert {series.name: [point.capture for point in series.points] for series in found} == {
        "jit_train_step of lm_2": ["lm_1", "lm_2"],
        "jit_train_step of vision": ["vision"],
    }


def test_memories_of_different_jobs_and_of_different_measurements_are_not_joined(tmp_path: Path) -> None:
    sizes = {"lm/2026_11_18_04_00_00": 8, "lm/2026_11_19_04_00_00": 9, "vision/2026_11_20_04_00_00": 900}
    for run, size in sizes.items():
        (tmp_path / run).mkdir(parents=True)
        write(tmp_path / run, [Sample([Frame("step")], size * MIB)])
    (tmp_path / "lm/2026_11_21_04_00_00").mkdir()
    (tmp_path / "lm/2026_11_21_04_00_00/job.watch").write_bytes(watch_bytes({"cuda:0": saw_tooth(60)}))
    found = trend(captures(find_runs(str(tmp_path))), Scan(InProcess))
    assert {series.name: [point.peak_bytes // MIB for point in series.points] for series in found} == {
        "HBM of vision/2026_11_20_04_00_00": [900],
        "HBM of lm/2026_11_21_04_00_00": [900],
        "HBM of lm/2026_11_19_04_00_00": [8, 9],
    }


def test_growth_that_no_allocation_explains_is_stated_as_such() -> None:
    text = rise_text(Rise(0, 1, (TrendChange(UNEXPLAINED, 0, 2**30),)))
    assert text == "+1.00 GiB explained by no allocation"


def stored_program(name: str, folder: Path) -> tuple[HostFile, str]:
    """Return the file of a program, and the program's fingerprint in it."""
    (path,) = changed_logdir(name, folder).iterdir()
    (part,) = open_file(path.read_bytes(), str(path), host="")
    return host_file(str(path)), use_of(part).fingerprint
