from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from support.advised import (
    MIB,
    Tree,
    adam,
    array,
    compiled,
    given,
    kinds,
    sgd,
    step_arguments,
    stepped,
    unrolled,
    weights,
)

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording


def on(recording: Recording, backend: Backend) -> Recording:
    """Return the recording as if it were compiled for another backend."""
    assert recording.program is not None
    return replace(recording, program=replace(recording.program, backend=backend))


def on_tpu(recording: Recording) -> Recording:
    return on(recording, Backend.TPU)


def test_optimizer_state_is_read_after_the_peak() -> None:
    """Expect what two programs save: the first one returns gradients, half as large as Adam's state."""
    advice = given(on_tpu(stepped(adam, 8192)), AdviceKind.OFFLOAD)
    assert advice.title == "Offload state to the host"
    assert advice.bytes == 48 * MIB
    assert advice.saving_bytes == advice.saving.at_least == pytest.approx(24 * MIB, rel=0.05)


def test_results_may_contain_temporary_memory() -> None:
    advice = given(on(stepped(adam, 8192), Backend.GPU), AdviceKind.OFFLOAD)
    assert advice.saving.at_least < advice.saving.expected < advice.saving.at_most
    assert advice.saving.at_least == pytest.approx(24 * MIB, rel=0.05)
    assert advice.saving.at_most == pytest.approx(48 * MIB, rel=0.05)


def test_host_and_device_memory_of_a_cpu_are_the_same() -> None:
    assert AdviceKind.OFFLOAD not in kinds(stepped(adam, 8192))
    assert AdviceKind.OFFLOAD not in kinds(on(stepped(adam, 8192), Backend.UNKNOWN))


def test_gradients_take_the_place_of_momentum() -> None:
    """Expect no advice: the gradients that a first program returns are as large as a single moment."""
    assert AdviceKind.OFFLOAD not in kinds(on_tpu(stepped(sgd, 8192)))


def test_without_donation_the_updated_state_is_saved_as_well() -> None:
    advice = given(on_tpu(stepped(adam, 8192, donated=())), AdviceKind.OFFLOAD)
    assert advice.saving_bytes > advice.bytes == 48 * MIB


def test_arguments_that_are_no_optimizer_s_state_stay_on_the_device() -> None:
    """Expect no advice for the table: an argument that is only read after the peak, in each call."""

    def serve(params: Tree, x: Any) -> Any:
        wide = jnp.sort(jnp.concatenate([x] * 16, axis=1), axis=1)
        return (wide.sum(1, keepdims=True) * x) @ params["table"]

    assert AdviceKind.OFFLOAD not in kinds(on_tpu(compiled(serve, {"table": array(1024, 4096)}, array(4096, 1024))))


def test_a_counter_in_the_state_is_read_early_and_is_small() -> None:
    def step(params: Any, state: Any, x: Any) -> Any:
        count = state["count"] + 1
        params, moments = adam(unrolled())(params, state, x / count)
        return params, {"count": count, **moments}

    params, state, x = step_arguments(8192, optimizer=adam)
    before = compiled(step, params, {"count": array(), **state}, x, donate_argnums=(0, 1))
    assert given(on_tpu(before), AdviceKind.OFFLOAD, "Offload state").bytes == 48 * MIB


def test_buffers_read_throughout_are_not_offloaded() -> None:
    """Compile only updates: each layer reads its decayed weight and its momentum in turn."""

    def update(params: Any, momentum: Any) -> Any:
        momentum = jax.tree.map(lambda m, p: 0.9 * m + 0.1 * p, momentum, params)
        return jax.tree.map(lambda p, m: p - m, params, momentum), momentum

    before = compiled(update, weights(), weights(), donate_argnums=(0, 1))
    assert AdviceKind.OFFLOAD not in kinds(on_tpu(before))


def test_both_moments_are_one_change_however_they_are_passed() -> None:
    """Expect one joint entry: alone, each would save less than half, because the peak moves to the other."""
    params, state, x = step_arguments(8192, optimizer=adam)

    def step(params: Any, mu: Any, nu: Any, x: Any) -> Any:
        params, state = adam(unrolled())(params, {"mu": mu, "nu": nu}, x)
        return params, state["mu"], state["nu"]

    before = compiled(step, params, state["mu"], state["nu"], x, donate_argnums=(0, 1, 2))
    apart = given(on_tpu(before), AdviceKind.OFFLOAD)
    together = given(on_tpu(stepped(adam, 8192)), AdviceKind.OFFLOAD)
    assert apart.title == "Offload mu, nu to the host"
    assert "# opt_state is mu, nu" in apart.change
    assert (apart.bytes, apart.saving_bytes) == (together.bytes, together.saving_bytes)


def test_what_a_train_state_holds_for_the_optimizer_is_named_by_its_path() -> None:
    params, state, x = step_arguments(8192, optimizer=adam)

    def step(train_state: Any, x: Any) -> Any:
        params, state = adam(unrolled())(train_state["params"], train_state["adam"], x)
        return {"params": params, "adam": state}

    before = compiled(step, {"params": params, "adam": state}, x, donate_argnums=0)
    together = given(on_tpu(before), AdviceKind.OFFLOAD)
    apart = given(on_tpu(stepped(adam, 8192)), AdviceKind.OFFLOAD)
    assert together.title == "Offload train_state['adam'] to the host"
    assert (together.bytes, together.saving_bytes) == (apart.bytes, apart.saving_bytes)
