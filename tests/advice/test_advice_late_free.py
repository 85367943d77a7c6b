from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from advised import MIB, WIDTH, adam, array, compiled, given, kinds, step_arguments, unrolled, weights
from allocators import Block, allocator

from tb_memplugin.analysis.advice import Kind
from tb_memplugin.analysis.usage import peak
from tb_memplugin.recording import Recording, Regions

STEPS = 12


def test_optimizer_state_is_read_after_the_peak() -> None:
    """Without it the peak is lower by all of it: at the peak, none of it is on the device yet."""
    before = compiled(adam(unrolled()), *step_arguments(8192, optimizer=adam), donate_argnums=(0, 1))
    advice = given(before, Kind.LATE_FREE)
    assert advice.title == "Keep state on the host"
    assert advice.bytes == 48 * MIB
    assert 0.9 * 48 * MIB <= advice.saving_bytes <= 48 * MIB
    assert advice.sentence.endswith("the device's memory is the host's, and nothing is won.")


def test_what_is_not_donated_waits_on_the_host_twice() -> None:
    before = compiled(adam(unrolled()), *step_arguments(8192, optimizer=adam))
    advice = given(before, Kind.LATE_FREE)
    assert advice.saving_bytes > advice.bytes == 48 * MIB
    assert "what it comes back as has memory of its own" in advice.sentence
    donated = compiled(adam(unrolled()), *step_arguments(8192, optimizer=adam), donate_argnums=(0, 1))
    assert "comes back" not in given(donated, Kind.LATE_FREE).sentence


def test_a_counter_in_the_state_is_read_early_and_is_small() -> None:
    def step(params: Any, state: Any, x: Any) -> Any:
        count = state["count"] + 1
        params, moments = adam(unrolled())(params, state, x / count)
        return params, {"count": count, **moments}

    params, state, x = step_arguments(8192, optimizer=adam)
    before = compiled(step, params, {"count": array(), **state}, x, donate_argnums=(0, 1))
    assert given(before, Kind.LATE_FREE, "Keep state").bytes == 48 * MIB


def test_an_argument_that_is_read_first_and_never_again() -> None:
    def step(raw: Any, params: Any) -> Any:
        return jax.value_and_grad(unrolled())(params, jnp.sort(raw, axis=1)[:, :WIDTH] * 2)

    before = compiled(step, array(4096, 8 * WIDTH), weights())
    advice = given(before, Kind.LATE_FREE)
    assert advice.title == "Free raw before the peak"
    assert advice.bytes == 64 * MIB
    assert advice.new_peak_bytes < peak(before).bytes


def test_weights_that_are_read_first_and_never_again_are_the_caller_s() -> None:
    """It keeps them for the next call, so that nothing is won if this one lets them go."""

    def serve(params: Any, x: Any) -> Any:
        x = x @ params["embed"] @ params["mix"]
        wide = jnp.sort(jnp.concatenate([jnp.sin(x)] * 8, axis=1), axis=1)
        return jnp.sort(wide * 2, axis=0).sum(1)

    params = {"embed": array(2048, 2048), "mix": array(2048, 2048)}
    before = compiled(serve, params, array(1024, 2048))
    assert given(before, Kind.LATE_FREE).title == "Free x before the peak"


def test_what_is_read_all_along_is_where_it_should_be() -> None:
    """A decayed weight and its momentum are read in every layer's turn, by a program that has nothing but updates."""

    def update(params: Any, momentum: Any) -> Any:
        momentum = jax.tree.map(lambda m, p: 0.9 * m + 0.1 * p, momentum, params)
        return jax.tree.map(lambda p, m: p - m, params, momentum), momentum

    before = compiled(update, weights(), weights(), donate_argnums=(0, 1))
    assert Kind.LATE_FREE not in kinds(before)


# Allocators.


def work() -> list[Block]:
    return [Block("temporary", 8 * MIB, step, step) for step in range(STEPS)]


def run(blocks: list[Block]) -> Recording:
    return allocator([*blocks, *work()], STEPS)


def test_what_earlier_steps_leave_behind() -> None:
    advice = given(run([Block("history", 2 * MIB, step, None) for step in range(STEPS)]), Kind.LATE_FREE)
    assert advice.title == "Memory of earlier steps is never freed"
    assert advice.bytes == advice.saving_bytes == 2 * MIB * (STEPS - 1)  # that of the last step is its own
    assert len(advice.rows) == STEPS - 1
    assert "11 allocations of earlier steps, from history, still hold 22.0 MiB." in advice.sentence


def test_a_source_that_tells_of_no_regions() -> None:
    """As PyTorch's profiler, which tells of sizes alone."""
    told = run([Block("history", 2 * MIB, step, None) for step in range(STEPS)])
    nowhere = np.full_like(told.allocations.region, -1)
    none = Regions(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))
    bare = replace(told, allocations=replace(told.allocations, region=nowhere), regions=none)
    assert given(bare, Kind.LATE_FREE).saving_bytes == given(told, Kind.LATE_FREE).saving_bytes


def test_state_of_the_step_before_beside_that_of_this_one() -> None:
    kept = [Block("state", 16 * MIB, step, step + 1 if step + 1 < STEPS else None) for step in range(-1, STEPS)]
    advice = given(run(kept), Kind.LATE_FREE)
    assert advice.title == "Memory of the step before is freed late"
    assert advice.bytes == advice.saving_bytes == 16 * MIB


def test_steps_that_free_what_they_allocate() -> None:
    assert Kind.LATE_FREE not in kinds(run([Block("weights", 64 * MIB, 0, None)]))
