"""Times of a program's instructions, and how long its buffers are held, against plain loops over rows."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.servers import DEMO

from tb_memplugin.analysis.dataflow.graph import shared_memory
from tb_memplugin.analysis.program_times import HeldMemory, ProgramTimes, held_memory, program_times
from tb_memplugin.analysis.step_time import step_time
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.accelerators import ACCELERATORS
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.program import InstructionTimes
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.questions.recording.times import times

RUNS = ("v5e_train_step", "h100_train_step", "train_step", "scan_remat", "leak")


def program(run: str) -> Recording:
    return next(one for one in listing_of_path(str(DEMO / run)).recordings if one.program and one.is_main_memory)


@pytest.fixture(params=RUNS)
def timed(request: pytest.FixtureRequest) -> tuple[Recording, ProgramTimes, HeldMemory]:
    recording = program(request.param)
    found, held = program_times(recording), held_memory(recording)
    assert found is not None and held is not None
    return recording, found, held


def test_the_programs_of_dumps_are_estimated_and_those_of_profiles_measured() -> None:
    estimated = program_times(program("v5e_train_step"))
    assert estimated is not None and estimated.estimated is not None and not estimated.is_measured
    recording = program("v5e_train_step")
    assert recording.program is not None and recording.program.costs is not None
    again = step_time(recording.program.costs(), ACCELERATORS["v5e"].speed)
    assert estimated.seconds.tolist() == again.seconds.tolist()
    measured = program_times(program("leak"))
    assert measured is not None and measured.is_measured and measured.executions == 24


def test_bytes_are_held_from_the_start_of_a_row_to_its_end(timed: tuple[Recording, ProgramTimes, HeldMemory]) -> None:
    recording, found, held = timed
    rows, seconds = recording.allocations, found.seconds
    for row in range(0, len(rows), 7):
        lasts = seconds[max(int(rows.start[row]), 0) : int(rows.end[row])].sum()
        assert held.byte_seconds[row] == pytest.approx(int(rows.charge[row]) * lasts)
    assert sum(held.by_role.values()) == pytest.approx(held.byte_seconds.sum())
    assert list(held.by_role.values()) == sorted(held.by_role.values(), reverse=True)
    assert set(held.by_role) <= set(Role) and 0 < held.near_peak <= seconds.sum()


def test_the_longest_time_without_a_use(timed: tuple[Recording, ProgramTimes, HeldMemory]) -> None:
    """Recompute it for each row on a strip of the instructions that use its memory."""
    recording, found, held = timed
    program = recording.program
    assert program is not None and program.values is not None and program.value is not None
    values, rows, n = program.values(), recording.allocations, recording.length
    group = {value: {value} for value in range(len(values))}
    for one, other in zip(*(column.tolist() for column in shared_memory(values)), strict=True):
        joined = group[one] | group[other]
        for value in joined:
            group[value] = joined
    outside = program.computation.isin({program.entry_computation})
    loops = program.op.isin({"while"})
    for row in np.flatnonzero((rows.charge > 0) & (program.value >= 0)).tolist()[::3]:
        uses = np.zeros(n, dtype=bool)
        for value in group[int(program.value[row])]:
            at = [
                int(values.producer[value]),
                *values.use[values.use_begin[value] : values.use_begin[value + 1]].tolist(),
            ]
            for position in (p for p in at if p >= 0):
                uses[position] = True
                caller = position + int(np.argmax(outside[position:]))
                if caller != position and loops[caller]:  # in each iteration
                    begin = caller
                    while begin > 0 and not outside[begin - 1]:
                        begin -= 1
                    uses[begin : caller + 1] = True
        longest = current = 0.0
        for position in range(max(int(rows.start[row]), 0), int(rows.end[row])):
            current = 0.0 if uses[position] else current + float(found.seconds[position])
            longest = max(longest, current)
        assert held.unused[row] == pytest.approx(longest, abs=1e-12), row


def measured_twice(recording: Recording, factor: float, slow: str) -> Recording:
    """Return a program that ran on two devices as estimated, but for one instruction."""
    assert recording.program is not None and recording.program.costs is not None
    seconds = step_time(recording.program.costs(), ACCELERATORS["v5e"].speed).seconds
    names = recording.program.name.tolist()
    each = np.array([factor if name == slow else 1.0 for name in names])
    runs = np.full(len(names), 20)
    ran = InstructionTimes(Text.of(names), runs, runs * seconds * each, seconds * each * 2, seconds * each, ("a", "b"))
    return replace(recording, program=replace(recording.program, measured=Lazy(lambda: ran)))


def test_differences_from_the_estimate_and_between_devices_are_sentences() -> None:
    recording = measured_twice(program("v5e_train_step"), 3.0, "fusion.487")
    found = program_times(recording)
    assert found is not None and found.estimated is not None and found.executions == 20
    answer = times(recording)
    total = float(found.estimated.seconds.sum())
    assert answer["measured_seconds"] == pytest.approx(total + 2 * found.estimated.seconds[410])
    assert (answer["runs"], answer["devices"]) == (20, 2)
    text = " ".join(answer["sentences"])
    took = f"{3e3 * found.estimated.seconds[410]:.2f} ms"
    assert f"fusion.487 is 3.0 times slower than estimated: {took}, estimated 2.0 ms." in text
    assert "fusion.487 takes 2.0 times as long on the slowest of 2 devices as on the fastest." in text
    assert "fusion.13 " not in text.replace("fusion.13 takes 2.0 times as long on the slowest", "")


H100 = Path(__file__).parents[1] / "data" / "h100"
STEPS = sorted(path.name.removesuffix(".xplane.pb.gz") for path in H100.glob("*.xplane.pb.gz"))
SECONDS = {each["name"]: each.get("seconds") for each in json.loads((H100 / "programs.json").read_text())["programs"]}


def on_h100(name: str, folder: Path) -> Recording:
    """Return a program of a profile of an H100, two steps of which are in it."""
    run = folder / "plugins" / "profile" / name
    run.mkdir(parents=True)
    (run / "host.xplane.pb").write_bytes(gzip.decompress((H100 / f"{name}.xplane.pb.gz").read_bytes()))
    return next(one for one in listing_of_path(str(folder)).recordings if one.program and one.is_main_memory)


@pytest.mark.parametrize("name", STEPS)
def test_times_of_an_h100_are_those_of_its_steps_and_about_as_estimated(name: str, tmp_path: Path) -> None:
    """Kernels that ran as a graph are found by their own names; those of libraries count to the total."""
    recording = on_h100(name, tmp_path)
    found, answer = program_times(recording), times(recording)
    assert found is not None and found.estimated is not None and found.total_measured is not None
    assert found.executions == answer["runs"] == 2
    assert found.total_measured == pytest.approx(SECONDS[name], rel=0.1)
    assert found.estimated.total == pytest.approx(found.total_measured, rel=0.25)
    assert found.seconds.sum() == pytest.approx(found.total_measured)
    # Where each kernel has an instruction, many are within a third of their estimates.
    assert found.measured is not None
    known = np.flatnonzero((found.measured > 1e-4) & (found.estimated.seconds > 0))
    ratio = found.measured[known] / found.estimated.seconds[known]
    assert len(known) >= 8 and np.mean((ratio > 0.67) & (ratio < 1.5)) > (0.4 if "resnet" in name else 0.7)


def test_a_program_of_an_unknown_device_has_no_times() -> None:
    recording = program("v5e_train_step")
    assert recording.program is not None
    unknown = replace(recording, program=replace(recording.program, speed=None))
    assert program_times(unknown) is None and held_memory(unknown) is None
    assert times(unknown)["sentences"] == [] and times(unknown)["estimated_seconds"] is None
