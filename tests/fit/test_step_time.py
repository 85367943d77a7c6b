"""The time of a step in the outcome of a fit."""

from __future__ import annotations

from programs.stored import Stored

from tb_memplugin.analysis.step_time import Bound, step_time
from tb_memplugin.fit.compiling.program_memory import with_time
from tb_memplugin.model.accelerators import ACCELERATORS
from tb_memplugin.model.fit import Candidate, Outcome
from tb_memplugin.questions.fit.words import work_text
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.readers.hlo.module.costs import program_costs

PROTO = Stored("llama_fsdp_tensor_parallel", "h100").proto
PROGRAM = read_hlo(PROTO, source="step.hlo.pb")[0]


def test_a_step_that_waits_for_others_says_so() -> None:
    found = with_time(Outcome(Candidate("a.py:step", "h100:8")), PROGRAM)
    time = step_time(program_costs(PROTO, ""), ACCELERATORS["h100"].speed)
    assert found.step_seconds == time.total and time.bound_by(Bound.LINKS) > time.total / 10
    share = round(100 * time.bound_by(Bound.LINKS) / time.total)
    assert 0 < found.work_seconds["collectives"] < time.total
    assert found.caveats == (f"About {share}% of the estimated time of a step is waiting for other devices",)
    again = round(100 * found.work_seconds["recomputation"] / time.total)
    assert f"recomputation {again}%" in work_text(found)


def test_a_step_on_a_cpu_has_no_time() -> None:
    found = with_time(Outcome(Candidate("a.py:step", "cpu:8")), PROGRAM)
    assert found.step_seconds == 0 and found.caveats == ()
