"""Programs of a dump, compiled again: unchanged, and with changes that their step could have had."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jax")

from fit.steps import DUMPED_STEP, compile_here, compile_step, dumped, write_code

from tb_memplugin.fit.compile_task import CompileTask
from tb_memplugin.fit.step.step_file import find_step
from tb_memplugin.fit.sweep import run_name
from tb_memplugin.model.fit import Candidate, Outcome


def changed(step: str, target: str, *changes: str) -> Outcome:
    return compile_here(CompileTask(Candidate(step, target, changes=changes))).outcome


@pytest.mark.parametrize("target", ["cpu:1", "cpu:4"])
def test_a_program_of_a_dump_reserves_what_its_step_does(target: str, tmp_path: Path) -> None:
    step = write_code(tmp_path, DUMPED_STEP.format(folder=str(tmp_path / "dump")))
    original, donated = (compile_step(step, target=target, donated=each).outcome for each in (False, True))
    program = dumped(tmp_path / "dump")
    again, changed_so = changed(program, target), changed(program, target, "donate:state")
    assert (original.error, again.error, changed_so.error) == ("", "", "")
    assert again.reserved_bytes == original.reserved_bytes
    assert changed_so.reserved_bytes == donated.reserved_bytes

    assert (
        "has state['m']['a'], state['m']['b'], state['w']['a'], state['w']['b'], batch"
        in changed(program, target, "donate:weights").error
    )
    assert "needs more than the program of a dump" in changed(program, target, "drop-unused").error
    assert "Nothing to split along the axis: 3" in changed(program, target, "shard:3:state").error
    if target == "cpu:1":
        assert (donated.reserved_bytes or 0) < (original.reserved_bytes or 0)
    else:
        for axis in ("4", "data"):
            both = (f"shard:{axis}:state", "donate:state")
            assert changed(program, target, *both[:1]).reserved_bytes == changed(step, target, *both[:1]).reserved_bytes
            assert changed(program, target, *both).reserved_bytes == changed(step, target, *both).reserved_bytes
        assert "at least 4 devices" in changed(program, "cpu:2").error


def test_a_damaged_program_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "module_0000.jit_f.before_optimizations.hlo.pb").write_bytes(b"\xff" * 99)
    step = dumped(tmp_path)
    assert find_step(step).text == step
    assert "cannot be read" in changed(step, "cpu:1").error


def test_programs_of_two_dumps_have_runs_of_their_own() -> None:
    steps = (f"/logs/{folder}/module_0000.jit_f.before_optimizations.hlo.pb:jit_f" for folder in "ab")
    names = [run_name(Candidate(step, "v5e:2x2")) for step in steps]
    assert names == ["a.module_0000.jit_f.jit_f_v5e-2x2", "b.module_0000.jit_f.jit_f_v5e-2x2"]
