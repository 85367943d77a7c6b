from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from support.advised import (
    LAYERS,
    MIB,
    WIDTH,
    array,
    assert_close,
    compiled,
    given,
    kinds,
    layer,
    sgd,
    unrolled,
    weights,
)

from tb_memplugin.analysis.advice import AdviceKind

BATCH = 4096


def test_gradients_for_an_update_elsewhere() -> None:
    before = compiled(jax.grad(unrolled()), weights(), array(256, WIDTH))
    advice = given(before, AdviceKind.OUTPUTS)
    assert advice.title == "Gradients are returned"
    assert advice.bytes == 24 * MIB

    def update(params: Any, x: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(unrolled())(params, x))

    assert_close(advice, before, compiled(update, weights(), array(256, WIDTH), donate_argnums=0))


def test_activations_that_are_returned() -> None:
    def loss(params: Any, x: Any) -> Any:
        hidden = []
        for i in range(LAYERS):
            with jax.named_scope(f"layer_{i}"):
                hidden.append(jnp.cos(x @ params[f"layer_{i}"]["up"]))
                x = layer(params[f"layer_{i}"], x)
        return (x**2).mean(), hidden

    def alone(params: Any, x: Any) -> Any:
        return loss(params, x)[0]

    arguments = weights(), array(BATCH, WIDTH)
    step, lean = jax.value_and_grad(loss, has_aux=True), jax.value_and_grad(alone)
    before, after = compiled(step, *arguments), compiled(lean, *arguments)
    advice = given(before, AdviceKind.OUTPUTS, "Activations")
    assert advice.bytes == LAYERS * BATCH * 2 * WIDTH * 4  # the loss, which the backward pass does not need, is none
    assert_close(advice, before, after)


def test_a_result_that_is_an_argument_as_it_came() -> None:
    def both(state: Any, x: Any) -> Any:
        handed_back: Any = jax.lax.optimization_barrier(state)
        return x @ state, handed_back

    before = compiled(both, array(2048, 2048), array(64, 2048))
    advice = given(before, AdviceKind.OUTPUTS)
    assert advice.title == "Unchanged arguments are returned"
    assert advice.bytes == 16 * MIB
    assert_close(advice, before, compiled(lambda state, x: x @ state, array(2048, 2048), array(64, 2048)))


def test_results_that_must_be() -> None:
    arguments = weights(), weights(), array(256, WIDTH)
    assert AdviceKind.OUTPUTS not in kinds(compiled(sgd(unrolled()), *arguments, donate_argnums=(0, 1)))
    assert AdviceKind.OUTPUTS not in kinds(compiled(lambda x: jnp.sin(x) @ x, array(2048, 2048)))
