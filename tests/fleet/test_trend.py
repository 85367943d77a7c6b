"""Trends over generated days, of which one has a change."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.changed import changed_logdir
from support.in_process import InProcess

from benchmarks.pods.pod import Pod, write_trend
from tb_memplugin.fleet.scan import Scan
from tb_memplugin.fleet.sessions import captures
from tb_memplugin.fleet.summarize import use_of
from tb_memplugin.fleet.trend import changes_between, trend
from tb_memplugin.logdir import HostFile, find_runs
from tb_memplugin.logdir.files import host_file
from tb_memplugin.model.fleet import Rise
from tb_memplugin.questions.fleet.words import rise_text
from tb_memplugin.readers import open_file


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
    assert text.startswith("`layer_*` saves one more activation (`f32[32768,1024]`, 3 layers, +384 MiB); ")


def stored_program(name: str, folder: Path) -> tuple[HostFile, str]:
    """Return the file of a program, and the program's fingerprint in it."""
    (path,) = changed_logdir(name, folder).iterdir()
    (part,) = open_file(path.read_bytes(), str(path), host="")
    return host_file(str(path)), use_of(part).fingerprint
