"""Programs that ran on an H100: what JAX's allocator had at its peak is what we read from the compiled program.

`tests/data/h100` has the optimized program of each, the profile of some, and in programs.json what the compiler said,
and `device.memory_stats()` after steps in a process of its own. Two were out of memory.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_memplugin.analysis.fleet.peaks import site_name
from tb_memplugin.analysis.linking import link_to_programs
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers import open_file
from tb_memplugin.readers.hlo import read_hlo

FOLDER = Path(__file__).parents[1] / "data" / "h100"
RUNS: list[dict[str, Any]] = json.loads((FOLDER / "programs.json").read_text())["programs"]
STORED = [run for run in RUNS if (FOLDER / f"{run['name']}.hlo.pb.gz").exists()]
PROFILED = [run for run in RUNS if (FOLDER / f"{run['name']}.xplane.pb.gz").exists()]
GRANULE = 256  # the allocator rounds each request up to a multiple of it; XLA asks for a block of each argument


def stored(name: str) -> bytes:
    return gzip.decompress((FOLDER / name).read_bytes())


def compiled_program(run: dict[str, Any]) -> Recording:
    (found,) = (r for r in read_hlo(stored(f"{run['name']}.hlo.pb.gz"), source=run["name"]) if r.memory == "HBM")
    return found


@pytest.mark.parametrize("run", STORED, ids=lambda run: run["name"])
def test_the_reserved_bytes_are_those_that_the_allocator_had_in_use(run: dict[str, Any]) -> None:
    program = compiled_program(run)
    reserved = int(program.regions.size.sum())
    assert peak(program).bytes == run["compiled"]["peak_memory"] <= reserved
    if "allocator_peak" in run:
        assert abs(run["allocator_peak"] - reserved) <= 16 * GRANULE
        assert reserved <= run["limit"]
    else:
        assert "RESOURCE_EXHAUSTED" in run["error"]
        assert reserved > run["limit"]


def test_programs_that_ran_and_programs_that_did_not_are_stored() -> None:
    assert len([run for run in STORED if "allocator_peak" in run]) >= 8
    assert len([run for run in STORED if "error" in run]) >= 2
    assert len(PROFILED) >= 5


@pytest.mark.parametrize("run", PROFILED, ids=lambda run: run["name"])
def test_the_events_of_the_allocator_in_a_profile_lead_to_its_own_peak(run: dict[str, Any]) -> None:
    parts = open_file(stored(f"{run['name']}.xplane.pb.gz"), "vm.xplane.pb")
    recordings = [recording for part in parts for recording in part.read()]
    (allocator,) = (r for r in recordings if r.memory == "GPU_0_bfc")
    (program,) = (r for r in recordings if r.memory == "HBM")
    assert peak(allocator).bytes == run["allocator_peak"]
    assert int(program.regions.size.sum()) == pytest.approx(run["allocator_peak"], abs=16 * GRANULE)


@pytest.mark.parametrize("run", PROFILED, ids=lambda run: run["name"])
def test_calls_of_compiled_programs_are_linked_and_named_by_the_code_of_the_user(run: dict[str, Any]) -> None:
    parts = open_file(stored(f"{run['name']}.xplane.pb.gz"), "vm.xplane.pb")
    recordings = [recording for part in parts for recording in part.read()]
    (allocator,) = (r for r in recordings if r.memory == "GPU_0_bfc")
    joined = link_to_programs(allocator, [r for r in recordings if r.memory == "HBM"])
    assert joined.executable.any() and (joined.program[joined.executable] == 0).all()
    sites = {site_name(allocator, int(row)) for row in np.flatnonzero(joined.executable)}
    assert sites == {"jax_truth.py:21 go"}  # the line of the program that called it


def test_no_stored_file_contains_a_path_of_the_machine_that_made_it() -> None:
    for path in FOLDER.glob("*.gz"):
        content = gzip.decompress(path.read_bytes())
        assert not [folder for folder in (b"/work/", b"/root/", b"/home/") if folder in content]
