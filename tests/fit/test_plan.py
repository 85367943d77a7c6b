"""Plans: the front and the prices of made-up candidates, and which of many combinations are compiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tb_memplugin.errors import InputError
from tb_memplugin.fit.knobs import parse_varied
from tb_memplugin.fit.plan import compile_plan, knobs_of_batch, proposed_knobs
from tb_memplugin.fit.step.lowering import tokens_of
from tb_memplugin.fit.sweep import Sweep
from tb_memplugin.model.fit import Candidate, Outcome
from tb_memplugin.model.fit_plan import batch_knob, knob_prices, plan
from tb_memplugin.questions.fit.plan import lines
from tb_memplugin.questions.fit.words import rate_text
from tb_memplugin.targets import targets_to_try

GIB = 2**30
LIMIT = 16 * GIB


def outcome(gib: float, seconds: float, target: str = "v5e:4x4", **knobs: Any) -> Outcome:
    return Outcome(
        Candidate("gpt.py:step", target, tuple(knobs.items())),
        reserved_bytes=int(gib * GIB),
        limit_bytes=LIMIT,
        step_seconds=seconds,
        bound_seconds={"matrix products": 0.75 * seconds, "memory": 0.25 * seconds},
        utilization=0.4,
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_front_is_what_nothing_beats(seed: int) -> None:
    random = Random(seed)
    some = [
        outcome(random.randint(1, 20), random.choice([1, 2, 4]), random.choice(["v5e:2x2", "v6e:2x2"]), batch=batch)
        for batch in range(1, 30)
    ]
    found = plan(some)
    fitting = [one for one in found.candidates if one.outcome.fits]
    memory = {id(one): one.outcome.reserved_bytes or 0 for one in fitting}
    for one in fitting:
        beaten = any(
            other.target == one.target
            and other.rate >= one.rate
            and memory[id(other)] <= memory[id(one)]
            and (other.rate, memory[id(other)]) != (one.rate, memory[id(one)])
            for other in fitting
        )
        alike = sum((one.target, one.rate, memory[id(one)]) == (o.target, o.rate, memory[id(o)]) for o in fitting)
        assert one.on_front is not beaten or alike > 1
    assert found.fastest is not None and found.fastest.rate == max(one.rate for one in fitting)
    assert found.fastest.on_front and all(one.outcome.fits for one in found.front)


def test_a_choice_is_told_with_its_cost_and_what_it_allows() -> None:
    """Full recomputation costs 25 % at the same batch, and allows three times the batch: 1.6 times the rate."""
    some = [
        outcome(12, 1.0, batch=64, remat="none"),
        outcome(6, 1.25, batch=64, remat="full"),
        outcome(30, 2.0, batch=128, remat="none"),
        outcome(15, 1.875, batch=192, remat="full"),
    ]
    found = plan(some, {"v5e": 1.5})
    assert found.item == "batch"
    fastest = found.fastest
    assert fastest is not None and fastest.knobs == {"batch": 192, "remat": "full"}
    (price,) = knob_prices(found, fastest)
    assert price.gain == pytest.approx(192 / 1.875 / 64)
    printed = "\n".join(lines(found))
    assert "remat=full in place of none, as estimated: a step takes 25% longer and 6.00 GiB less memory; " in printed
    assert "it allows batch=192 in place of 64: 1.6 times as many batch/s" in printed
    assert "matrix products 75%, memory 25%" in printed
    cost = 1.5 * 16 / 3600 / (192 / 1.875) * 1e6
    assert fastest.cost == pytest.approx(cost) and f"{cost:.2g} for a million (batch)" in printed


def test_rates_count_tokens_devices_or_steps() -> None:
    timed = outcome(1, 0.5, "v5e:2x2", per_device_batch_size=4)
    assert plan([timed]).candidates[0].rate == 4 * 4 / 0.5
    assert rate_text(timed, "per_device_batch_size") == "32"  # the table of `fit` says the same
    of_cores = outcome(1, 0.5, "tpu7x:2x2x1", per_device_batch_size=4)  # two devices for each chip
    assert plan([of_cores]).candidates[0].rate == 4 * 8 / 0.5
    assert plan([outcome(1, 0.5, width=8)]).item == "steps"
    assert plan([outcome(1, 0.5, width=8)]).candidates[0].rate == 2


def test_nothing_fits_or_nothing_is_timed() -> None:
    nothing = plan([outcome(20, 1, batch=8), outcome(17, 1, batch=4)])
    assert nothing.fastest is None and not nothing.front
    assert "batch=4 is the nearest, 1.000 GiB too large" in "\n".join(lines(nothing))
    untimed = plan([outcome(8, 0, "cpu:1", batch=8), outcome(4, 0, "cpu:1", batch=4)])
    assert untimed.fastest is not None and untimed.fastest.knobs == {"batch": 4} and not untimed.front
    assert "speed of cpu:1 is not known" in "\n".join(lines(untimed))
    failed = plan([Outcome(Candidate("gpt.py:step", "v5e:4x4"), error="no module")])
    assert "Nothing could be compiled: no module" in "\n".join(lines(failed))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["layers", "batch"], "batch"),
        (["num_batches", "microbatches", "global_batch_size"], "global_batch_size"),
        (["micro_batch_size", "per_device_train_batch_size"], "per_device_train_batch_size"),
        (["eval_batch_size", "bs"], "bs"),
        (["batchnorm", "width"], None),
    ],
)
def test_the_knob_of_the_batch(names: list[str], expected: str | None) -> None:
    assert batch_knob(names) == expected


def test_a_global_batch_is_divided_where_the_knob_is_for_each_device() -> None:
    assert knobs_of_batch({"batch": 8}, [], ["v5e:4x4"], 512) == ["batch=512"]
    assert knobs_of_batch({"per_device_batch_size": 8}, [], ["v5e:4x4", "v6e:4x4"], 512) == ["per_device_batch_size=32"]
    for on in (["v5e:4x4", "v6e:2x4"], ["v5e:1x1", "v5e"]):
        with pytest.raises(InputError, match="equally many devices"):
            knobs_of_batch({"per_device_batch_size": 8}, [], on, 512)
    with pytest.raises(InputError, match="no knob for the batch"):
        knobs_of_batch({"width": 8}, [], ["v5e:4x4"], 512)
    with pytest.raises(InputError, match="twice"):
        knobs_of_batch({"batch": 8}, ["batch=8"], ["v5e:4x4"], 512)


def test_knobs_left_open_are_proposed() -> None:
    defaults = {"batch": 8, "remat": False, "microbatches": 1, "width": 8, "use_checkpoint": "none"}
    assert proposed_knobs(defaults, [], 12) == ["remat=False,True", "microbatches=1,2,4"]
    assert proposed_knobs(defaults, ["remat"], None) == []


def sweep_of(folder: Path, vary: list[str], size: Any) -> Sweep:
    """Return a sweep on v5e whose compiler is a function of the knobs that returns GiB and seconds."""

    def compile_one(candidate: Candidate, to_end: bool = False) -> Outcome:
        gib, seconds = size(**dict(candidate.knobs))
        return Outcome(candidate, reserved_bytes=int(gib * GIB), capacity_bytes=LIMIT, step_seconds=seconds)

    varied = [parse_varied(text, None) for text in vary]
    return Sweep("gpt.py:step", [targets_to_try("v5e:4x4")], (), varied, compile_one, folder)


def test_more_microbatches_are_compiled_until_one_fits(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, ["remat=0,1", "microbatches=8,1,2,4"], lambda remat, microbatches: (
        (40 - 30 * remat) / microbatches, 1 + 0.2 * remat + 0.1 * microbatches
    ))  # fmt: skip
    compile_plan(sweep)
    found = sorted(tuple(value for _, value in one.candidate.knobs) for one in sweep.outcomes)
    assert found == [(0, 1), (0, 2), (0, 4), (1, 1)]
    fastest = plan(sweep.outcomes).fastest
    assert fastest is not None and fastest.knobs == {"remat": 1, "microbatches": 1}


NAMED = ("remat:dots", "remat:names:attention", "remat:offload:attention")
SIZES = {(): (20.0, 1.0), NAMED[0]: (12.0, 1.1), NAMED[1]: (8.0, 1.2), NAMED[2]: (21.0, 1.3)}


@pytest.mark.parametrize(("knob", "expected"), [("width", SIZES), ("remat", {(): SIZES[()]})])
def test_policies_of_a_step_are_compiled_unless_a_knob_is_about_them(
    tmp_path: Path, knob: str, expected: dict[Any, Any]
) -> None:
    def compile_one(candidate: Candidate, to_end: bool = False) -> Outcome:
        gib, seconds = SIZES[candidate.changes[0] if candidate.changes else ()]
        policies = () if candidate.changes else NAMED
        made = Outcome(candidate, reserved_bytes=int(gib * GIB), capacity_bytes=LIMIT, policies=policies)
        return replace(made, step_seconds=seconds)

    sweep = replace(sweep_of(tmp_path, [f"{knob}=1"], None), compile=compile_one)
    compile_plan(sweep)
    assert {one.candidate.changes for one in sweep.outcomes} == {(key,) if key else () for key in expected}
    found = plan(sweep.outcomes)
    front = [one.outcome.candidate.changes for one in found.front]
    assert front == ([] if knob == "remat" else [(NAMED[0],), (NAMED[1],)])
    printed = "\n".join(lines(found))
    code = "policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)"
    assert (code in printed) == (knob != "remat")


def test_of_many_combinations_few_are_compiled(tmp_path: Path) -> None:
    best = {"a": 3, "b": 1, "c": 4, "d": 2}

    def size(**knobs: int) -> tuple[float, float]:
        away = sum(abs(value - best[name]) for name, value in knobs.items())
        return 4 + 0.5 * knobs["a"], 1 + away

    sweep = sweep_of(tmp_path, [f"{name}=0,1,2,3,4" for name in best], size)
    compile_plan(sweep)
    assert len(sweep.outcomes) <= 100 < 5**4
    fastest = plan(sweep.outcomes).fastest
    assert fastest is not None and fastest.knobs == best


def test_a_range_is_searched_for_each_choice(tmp_path: Path) -> None:
    sweep = sweep_of(
        tmp_path,
        ["batch=8:512:8", "remat=0,1"],
        lambda batch, remat: (batch * (0.25 - 0.2 * remat), batch * (1 + remat)),
    )
    compile_plan(sweep)
    found = plan(sweep.outcomes)
    fitting = {one.knobs["remat"]: 0 for one in found.candidates}
    for one in found.candidates:
        if one.outcome.fits:
            fitting[one.knobs["remat"]] = max(fitting[one.knobs["remat"]], int(one.knobs["batch"]))
    assert fitting == {0: 64, 1: 320}


def test_tokens_are_those_of_the_argument_with_a_sequence_for_each_item() -> None:
    import jax

    def lowered(*shapes: tuple[int, ...]) -> Any:
        arguments = [jax.ShapeDtypeStruct(shape, "int32") for shape in shapes]
        return jax.jit(lambda *given: given[0] * 2, keep_unused=True).lower(*arguments)

    assert tokens_of(lowered((64, 128), (7, 9)), {"batch": 64}) == 64 * 128
    assert tokens_of(lowered((4, 16, 128)), {"batch": 64}) == 64 * 128  # split over the devices of a pmap
    assert tokens_of(lowered((64, 128)), {"per_device_batch_size": 8}) == 64 * 128
    assert tokens_of(lowered((64,)), {"batch": 64}) == 0
    assert tokens_of(lowered((100, 3)), {"batch": 64, "width": 100}) == 0
