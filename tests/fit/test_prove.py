"""Answers that are compiled to the end: code and kernels need memory too, and are compiled after it is assigned."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from fit.steps import compile_here

from tb_memplugin.fit.compile_task import CompileTask
from tb_memplugin.fit.knobs import parse_varied
from tb_memplugin.fit.sweep import Compile, Sweep
from tb_memplugin.model.fit import Candidate, Outcome
from tb_memplugin.targets import Target

GIB = 2**30
needs_libtpu = pytest.mark.skipif(not find_spec("libtpu"), reason="needs libtpu")

KERNEL = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def step(devices, scalars=16):
    place = jax.sharding.SingleDeviceSharding(devices[0])
    def kernel(x, y, memory):
        memory[0] = 1
        y[...] = x[...] + memory[0]
    def add_one(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, out_shape=shape, scratch_shapes=[pltpu.SMEM((scalars,), jnp.int32)])(x)
    return jax.jit(add_one), (jax.ShapeDtypeStruct((256, 256), jnp.int32, sharding=place),)
"""


def refused_above(value: int, limit: int = 16 * GIB) -> tuple[Sweep, list[tuple[int, bool]]]:
    """Return a sweep of programs of GIB / 8 per item, which the compiler refuses above a value at the end only."""
    compiled = list[tuple[int, bool]]()

    def compile(candidate: Candidate, to_end: bool = False) -> Outcome:
        batch = int(dict(candidate.knobs)["batch"])
        compiled.append((batch, to_end))
        text = "RESOURCE_EXHAUSTED: code" if to_end and batch > value else ""
        return Outcome(candidate, reserved_bytes=batch * GIB // 8, refused=text)

    varied = [parse_varied("batch=1:1024", 1)]
    return Sweep(
        "f.py:step", [[Target("v5e", (2, 2))]], (), varied, compile, Path("unused"), limit, proves=True
    ), compiled


def test_an_answer_that_is_refused_at_the_end_gives_way_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_memplugin.fit.sweep.write_record", lambda *_: None)
    sweep, compiled = refused_above(126, limit=int(15.98 * GIB))
    (answer,) = sweep.run()
    assert answer.value == 126
    assert [batch for batch, to_end in compiled if to_end] == [127, 126]
    assert len({one.candidate for one in sweep.outcomes}) == len(sweep.outcomes)


def test_only_answers_are_compiled_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_memplugin.fit.sweep.write_record", lambda *_: None)
    sweep, compiled = refused_above(1024)
    (answer,) = sweep.run()
    assert answer.value == 128
    assert [batch for batch, to_end in compiled if to_end] == [128]


def test_doubtful_answers_are_compiled_to_the_end_unless_asked_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_memplugin.fit.sweep.write_record", lambda *_: None)
    for proves, proved in ((None, [127, 126, 125]), (False, [])):
        sweep, compiled = refused_above(125, limit=int(15.98 * GIB))
        early = sweep.compile

        def compile(candidate: Candidate, to_end: bool = False, early: Compile = early) -> Outcome:
            return replace(early(candidate, to_end), doubtful=not to_end)

        (answer,) = replace(sweep, compile=compile, proves=proves).run()
        assert answer.value == (125 if proved else 127)
        assert [batch for batch, to_end in compiled if to_end] == proved


def test_after_some_refusals_answers_are_looked_for_further_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_memplugin.fit.sweep.write_record", lambda *_: None)
    sweep, compiled = refused_above(100)
    early = sweep.compile
    sweep.compile = lambda candidate, to_end=False: replace(
        early(candidate, to_end), capacity_bytes=int(16 * GIB), doubtful=not to_end
    )
    (answer,) = sweep.run()
    assert answer.value == 80
    assert [batch for batch, to_end in compiled if to_end] == [128, 127, 126, 125, 122, 116, 104, 80]


@pytest.mark.parametrize("largest", [0, 1, 384, 1023, 1024])
def test_blocks_of_a_kernel_are_searched_by_whole_compilations(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program reserves the same with each block, so that its size decides nothing."""
    monkeypatch.setattr("tb_memplugin.fit.sweep.write_record", lambda *_: None)
    to_end_count = 0

    def compile(candidate: Candidate, to_end: bool = False) -> Outcome:
        nonlocal to_end_count
        to_end_count += to_end
        too_large = to_end and int(dict(candidate.knobs)["block"]) > largest
        text = "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem" if too_large else ""
        return Outcome(candidate, reserved_bytes=GIB, capacity_bytes=16 * GIB, doubtful=not to_end, refused=text)

    sweep = Sweep(
        *("f.py:step", [[Target("v5e", (1, 1))]], (), [parse_varied("block=1:1024", 1)], compile, Path("unused")),
        proves=True,
    )
    (answer,) = sweep.run()
    assert answer.value == (largest or None) and to_end_count <= 24


@needs_libtpu
def test_a_kernel_with_too_much_on_chip_memory_is_refused_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)

    def outcome(scalars: int, to_end: bool) -> Outcome:
        candidate = Candidate(f"{tmp_path / 'kernel.py'}:step", "v5e:1x1", (("scalars", scalars),))
        return compile_here(CompileTask(candidate, uses_cache=False, to_end=to_end)).outcome

    early, late = outcome(1 << 20, False), outcome(1 << 20, True)
    # A busy machine may compile so small a program to the end before it ends the process.
    assert early.doubtful != bool(early.refused) and not early.error
    assert not early.doubtful or any("1 Pallas kernel" in caveat for caveat in early.caveats)
    assert not late.fits and "space=smem" in late.refused and not late.error
    assert late.reserved_bytes == early.reserved_bytes
    small = outcome(16, True)
    assert small.fits and not small.refused and not small.caveats
    assert small.vmem_bytes >= 2 * 256 * 256 * 4  # the windows into x and y
