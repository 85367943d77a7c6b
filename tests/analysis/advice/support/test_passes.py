"""The passes of a program's operations, by JAX's names and by the order in which the compiler runs them."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.advice.support.passes import program_passes
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.readers.text import read_text

FORWARD, BACKWARD = "jit(step)/jvp()", "jit(step)/transpose(jvp())"


def product(name: str, left: str, of: str) -> str:
    kind = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    return f'{name} = f32[512,512] dot({left}, w), {kind}, metadata={{op_name="{of}/dot_general"}}'


def step(*lines: str) -> str:
    """Return a compiled module with these lines, in this order."""
    arguments = "x = f32[512,512] parameter(0)", "w = f32[512,512] parameter(1)"
    body = "\n".join(f"  {line}" for line in (*arguments, *lines))
    return (
        "HloModule jit_step, is_scheduled=true, entry_computation_layout="
        f"{{(f32[512,512]{{1,0}}, f32[512,512]{{1,0}})->f32[512,512]{{1,0}}}}\n\nENTRY main {{\n{body}\n}}\n"
    )


MASK = f'mask = f32[512,512] multiply(a, a), metadata={{op_name="{BACKWARD}/mul"}}'
LAST = 'ROOT s = f32[512,512] multiply(g, mask), metadata={op_name="jit(step)/transpose(jvp())/mul"}'


def names_within(text: str, which: Pass) -> set[str]:
    (recording,) = read_text(text.encode(), source="step.txt")
    passes = program_passes(recording)
    assert passes is not None
    rows = np.flatnonzero((passes.made >= 0) & passes.within(which)[passes.made])
    return {recording.allocations.name[row] for row in rows.tolist()}


def test_an_operation_that_runs_ahead_does_not_end_the_forward_pass() -> None:
    text = step(product("a", "x", FORWARD), MASK, product("b", "a", FORWARD), product("g", "b", BACKWARD), LAST)
    assert names_within(text, Pass.FORWARD) == {"a", "b"}
    assert names_within(text, Pass.REMATERIALIZED) == set()


def test_products_of_the_forward_pass_after_those_of_the_backward_pass_are_run_again() -> None:
    again = product("b", "a", FORWARD).replace("b =", "again =")
    backward = product("g", "b", BACKWARD), product("h", "g", BACKWARD).replace("(g, w)", "(g, again)")
    last = LAST.replace("(g, mask)", "(h, mask)")
    text = step(product("a", "x", FORWARD), MASK, product("b", "a", FORWARD), backward[0], again, backward[1], last)
    assert names_within(text, Pass.FORWARD) == {"a", "b"}
    assert names_within(text, Pass.REMATERIALIZED) == {"again"}
