"""Advice on the order of operations, against what programs took when compiled without the latency-hiding scheduler."""

from __future__ import annotations

from dataclasses import replace

import pytest
from programs.stored import Stored
from support.advised import MIB, given, kinds, sgd, stepped

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording

# MiB less at the peak, by jax 0.12.0.1 with libtpu 0.0.52 and the CUDA plugin.
SAVED = {("recommender", "v5e"): 853, ("resnet", "h100"): 161}
SAVED_NOTHING = [("mlp_adam", "v6e"), ("accumulated", "v4"), ("recommender", "v4"), ("unet", "v5e")]


def stored(name: str, target: str) -> Recording:
    return next(r for r in Stored(name, target).recordings if r.program is not None and r.program.memory_space == 0)


@pytest.mark.parametrize(("program", "saved"), SAVED.items())
def test_the_saving_was_measured(program: tuple[str, str], saved: int) -> None:
    advice = given(stored(*program), AdviceKind.SCHEDULE)
    assert advice.saving.at_least <= saved * MIB <= advice.saving.at_most
    assert advice.bytes > 0 and len(advice.rows)
    option = "xla_tpu_enable" if program[1] == "v5e" else "xla_gpu_enable"
    assert option in advice.change


@pytest.mark.parametrize("program", SAVED_NOTHING)
def test_no_advice_where_the_scheduler_costs_nothing(program: tuple[str, str]) -> None:
    assert AdviceKind.SCHEDULE not in kinds(stored(*program))


def test_a_cpu_has_no_latency_hiding_scheduler() -> None:
    program = stored("resnet", "h100")
    assert program.program is not None
    assert AdviceKind.SCHEDULE not in kinds(replace(program, program=replace(program.program, backend=Backend.CPU)))
    assert AdviceKind.SCHEDULE not in kinds(stepped(sgd, 256))
