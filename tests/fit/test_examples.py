"""The examples compile, for CPU everywhere and for accelerators where their compilers are, and their knobs work."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from fit.steps import compile_here

from tb_memplugin.fit.compile_task import CompileTask
from tb_memplugin.model.fit import Candidate, Knob, Outcome

EXAMPLES = Path(__file__).parents[2] / "examples"
TINY: dict[str, dict[str, Knob]] = {
    "transformer": {"batch": 16, "layers": 3, "width": 256, "vocabulary": 512, "length": 64},
    "resnet": {"batch": 8, "size": 32, "depth": 26, "classes": 10},
    "decode": {"tokens": 256, "layers": 2, "width": 1024, "vocabulary": 512, "batch": 4},
}
ACCELERATORS = [
    pytest.param(target, marks=pytest.mark.skipif(not find_spec(module), reason=f"needs {module}"))
    for target, module in (("v5e:2x2", "libtpu"), ("tpu7x:1x1x1", "libtpu"), ("h100:4", "jax_cuda12_plugin"))
]


def compiled(example: str, target: str, **knobs: Knob) -> Outcome:
    step = f"{EXAMPLES / example}.py:step"
    values = tuple((TINY[example] | knobs).items())
    outcome = compile_here(CompileTask(Candidate(step, target, values), uses_cache=False)).outcome
    assert not outcome.error, f"{outcome.error}\n{outcome.traceback}"
    return outcome


def reserved(example: str, target: str, **knobs: Knob) -> int:
    found = compiled(example, target, **knobs).reserved_bytes
    assert found is not None
    return found


@pytest.mark.parametrize("target", ["cpu:4", *ACCELERATORS])
@pytest.mark.parametrize("example", TINY)
def test_every_example_compiles_for_several_devices(example: str, target: str) -> None:
    outcome = compiled(example, target)
    assert outcome.fits and outcome.reserved_bytes and outcome.parts
    assert {"parameter"} <= set(outcome.roles)


@pytest.mark.parametrize("example", TINY)
def test_every_example_has_a_file_that_says_how_to_run_it(example: str) -> None:
    text = (EXAMPLES / f"{example}.py").read_text()
    assert f"tb-memplugin fit examples/{example}.py:step --on " in text.split('"""')[1]


def test_the_transformer_needs_less_the_more_it_computes_again() -> None:
    sizes = [reserved("transformer", "cpu:4", remat=remat) for remat in ("none", "dots", "full")]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 3


def test_microbatches_and_tensor_parallelism_make_the_transformer_smaller() -> None:
    one = reserved("transformer", "cpu:4")
    assert reserved("transformer", "cpu:4", microbatches=4) < one
    split = compiled("transformer", "cpu:4", model=4)
    whole = compiled("transformer", "cpu:4", model=1)
    assert split.roles["optimizer_state"] < 0.3 * whole.roles["optimizer_state"]


def test_a_token_of_cache_costs_its_keys_and_values_once() -> None:
    """The cache is written in place: 2 layers, keys and values, 4 sequences, 2 of 8 heads on a device, bfloat16."""
    token = 2 * 2 * 4 * (8 // 4) * 128 * 2
    sizes = [compiled("decode", "cpu:4", tokens=tokens).roles["state"] for tokens in (256, 512)]
    assert sizes[1] - sizes[0] == 256 * token


@pytest.mark.parametrize("target", ACCELERATORS)
def test_accelerators_write_the_cache_in_place(target: str) -> None:
    outcome = compiled("decode", target, tokens=8192)
    assert outcome.reserved_bytes is not None
    assert outcome.reserved_bytes < outcome.roles["state"] * 1.1 + outcome.roles["parameter"]
    assert outcome.parts[0].name == "state cache"
