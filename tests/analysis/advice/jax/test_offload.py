from __future__ import annotations

from typing import Any

import jax
from support.advised import MIB, adam, array, compiled, given, kinds, step_arguments, stepped, unrolled, weights

from tb_memplugin.analysis.advice import AdviceKind


def test_optimizer_state_is_read_after_the_peak() -> None:
    """Expect the full saving: at the peak, none of the offloaded state is on the device yet."""
    before = stepped(adam, 8192)
    advice = given(before, AdviceKind.OFFLOAD)
    assert advice.title == "Offload state to the host"
    assert advice.bytes == 48 * MIB
    assert 0.9 * 48 * MIB <= advice.saving_bytes <= 48 * MIB
    assert advice.sentence.endswith("device and host memory are the same, so this saves nothing.")


def test_offloaded_state_is_counted_twice_without_donation() -> None:
    before = stepped(adam, 8192, donated=())
    advice = given(before, AdviceKind.OFFLOAD)
    assert advice.saving_bytes > advice.bytes == 48 * MIB
    assert "the updated value has separate memory" in advice.sentence
    donated = stepped(adam, 8192)
    assert "separate memory" not in given(donated, AdviceKind.OFFLOAD).sentence


def test_a_counter_in_the_state_is_read_early_and_is_small() -> None:
    def step(params: Any, state: Any, x: Any) -> Any:
        count = state["count"] + 1
        params, moments = adam(unrolled())(params, state, x / count)
        return params, {"count": count, **moments}

    params, state, x = step_arguments(8192, optimizer=adam)
    before = compiled(step, params, {"count": array(), **state}, x, donate_argnums=(0, 1))
    assert given(before, AdviceKind.OFFLOAD, "Offload state").bytes == 48 * MIB


def test_buffers_read_throughout_are_not_offloaded() -> None:
    """Compile only updates: each layer reads its decayed weight and its momentum in turn."""

    def update(params: Any, momentum: Any) -> Any:
        momentum = jax.tree.map(lambda m, p: 0.9 * m + 0.1 * p, momentum, params)
        return jax.tree.map(lambda p, m: p - m, params, momentum), momentum

    before = compiled(update, weights(), weights(), donate_argnums=(0, 1))
    assert AdviceKind.OFFLOAD not in kinds(before)


def test_both_moments_are_one_change_however_they_are_passed() -> None:
    """Expect one joint entry: alone, each would save less than half, because the peak moves to the other."""
    params, state, x = step_arguments(8192, optimizer=adam)

    def step(params: Any, mu: Any, nu: Any, x: Any) -> Any:
        params, state = adam(unrolled())(params, {"mu": mu, "nu": nu}, x)
        return params, state["mu"], state["nu"]

    apart = given(compiled(step, params, state["mu"], state["nu"], x, donate_argnums=(0, 1, 2)), AdviceKind.OFFLOAD)
    together = given(stepped(adam, 8192), AdviceKind.OFFLOAD)
    assert apart.title == "Offload mu, nu to the host"
    assert apart.change.startswith("mu, nu = jax.tree.map(") and "(mu, nu))" in apart.change
    assert (apart.bytes, apart.saving_bytes) == (together.bytes, together.saving_bytes)


def test_what_a_train_state_holds_for_the_optimizer_is_named_by_its_path() -> None:
    params, state, x = step_arguments(8192, optimizer=adam)

    def step(train_state: Any, x: Any) -> Any:
        params, state = adam(unrolled())(train_state["params"], train_state["adam"], x)
        return {"params": params, "adam": state}

    together = given(compiled(step, {"params": params, "adam": state}, x, donate_argnums=0), AdviceKind.OFFLOAD)
    apart = given(stepped(adam, 8192), AdviceKind.OFFLOAD)
    assert together.title == "Offload train_state['adam'] to the host"
    assert (together.bytes, together.saving_bytes) == (apart.bytes, apart.saving_bytes)
