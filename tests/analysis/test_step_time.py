"""Estimated times of steps, against steps that ran on an H100 and rules that follow from the parts."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tb_memplugin.analysis.step_time import Bound, step_time
from tb_memplugin.model.accelerators import ACCELERATORS
from tb_memplugin.model.arrays import F64, I32
from tb_memplugin.model.program import Backend, Costs
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.readers.hlo.module.costs import program_costs

H100 = Path(__file__).parents[1] / "data" / "h100"
MEASURED = {
    program["name"]: program["seconds"]
    for program in json.loads((H100 / "programs.json").read_text())["programs"]
    if "seconds" in program and (H100 / f"{program['name']}.hlo.pb.gz").exists()
}
SPEED = ACCELERATORS["v6e"].speed


def estimated(name: str) -> float:
    data = gzip.decompress((H100 / f"{name}.hlo.pb.gz").read_bytes())
    return step_time(program_costs(data, name), ACCELERATORS["h100"].speed).total


def test_steps_that_ran_took_about_as_long() -> None:
    found = {name: estimated(name) for name in MEASURED}
    assert len(found) >= 8
    for name, seconds in MEASURED.items():
        assert found[name] == pytest.approx(seconds, rel=0.2), name
    for a, b in combinations(MEASURED, 2):
        if not 0.9 < MEASURED[a] / MEASURED[b] < 1.1:
            assert (found[a] < found[b]) == (MEASURED[a] < MEASURED[b]), (a, b)


def test_recomputing_a_layer_may_be_faster_than_keeping_its_scores() -> None:
    """It ran so on the H100, since writing and reading the scores takes longer than computing them again."""
    none, full = "transformer_batch-16", "transformer_batch-16_remat-full"
    assert MEASURED[full] < MEASURED[none] and estimated(full) < estimated(none)


def costs(**columns: list[float]) -> Costs:
    """Return the costs of a program with three instructions; columns that are not named are 0, or -1 for none."""

    def column(name: str) -> F64:
        return np.array(columns.get(name, [0, 0, 0]), dtype=np.float64)

    def position(name: str) -> I32:
        return np.array(columns.get(name, [-1, -1, -1]), dtype=np.int32)

    return Costs(
        name=Text(np.zeros(3, dtype=np.int32), Strings.of(["add"])),
        backend=Backend.TPU,
        times=np.ones(3),
        flops=column("flops"),
        nbytes=column("nbytes"),
        link_bytes=column("link_bytes"),
        host_bytes=column("host_bytes"),
        part_of=position("part_of"),
        ends=position("ends"),
    )


def test_an_instruction_takes_as_long_as_its_bytes_or_its_products() -> None:
    found = step_time(costs(nbytes=[SPEED.memory_bytes, 1.0, 0.0], flops=[1.0, 2 * SPEED.flops, 0.0]), SPEED)
    assert found.seconds.tolist() == pytest.approx([1.0, 2.0, 0.0], abs=1e-5)
    assert found.utilization == pytest.approx(2 * SPEED.flops / SPEED.peak_flops / 3, rel=1e-4)
    assert found.bound_by(Bound.LINKS) == found.bound_by(Bound.HOST) == 0.0


def test_an_instruction_counts_for_each_iteration() -> None:
    found = step_time(replace(costs(nbytes=[SPEED.memory_bytes, 0, 0]), times=np.array([3.0, 1, 1])), SPEED)
    assert found.total == pytest.approx(3.0, abs=1e-4)


def test_a_transfer_is_hidden_as_far_as_others_take() -> None:
    started = costs(part_of=[0, -1, -1], ends=[-1, -1, 0], nbytes=[0, 2 * SPEED.memory_bytes, 0])
    short = step_time(replace(started, link_bytes=np.array([SPEED.link_bytes, 0, 0])), SPEED)
    long = step_time(replace(started, host_bytes=np.array([5 * SPEED.host_bytes, 0, 0])), SPEED)
    assert [short.total, short.bound_by(Bound.LINKS)] == pytest.approx([2.0, 0.0], abs=1e-4)
    assert [long.total, long.bound_by(Bound.HOST)] == pytest.approx([5.0, 3.0], abs=1e-4)


def test_kernels_of_a_gpu_beside_others_share_its_memory() -> None:
    beside = costs(part_of=[0, -1, -1], ends=[-1, -1, 0], nbytes=[SPEED.memory_bytes, SPEED.memory_bytes, 0])
    assert step_time(replace(beside, backend=Backend.GPU), SPEED).total == pytest.approx(2.0, abs=1e-4)
    assert step_time(beside, SPEED).total == pytest.approx(1.0, abs=1e-4)


def test_every_accelerator_has_rates() -> None:
    assert {name for name, chip in ACCELERATORS.items() if min(chip.speed) <= 0} == set()
