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


def prefill(params: Any, tokens: Any) -> Any:
    """Return the next token, and the keys and values in caches of twice the length."""
    x, cache = params["embed"][tokens], []
    for w in params["layers"]:
        keys = x @ w
        x = x + jax.nn.softmax(jnp.einsum("btd,bsd->bts", x, keys)) @ keys
        cache.append(jnp.zeros((x.shape[0], 2 * x.shape[1], x.shape[2])).at[:, : x.shape[1]].set(keys))
    return (x[:, -1] @ params["head"]).argmax(-1), cache


def sound(params: Any, tokens: Any) -> Any:
    """Return a spectrum of 80 numbers for eight times as many positions."""
    x = jnp.repeat(params["embed"][tokens], 8, axis=1)
    return jnp.tanh(x @ params["hidden"]) @ params["last"]


def test_caches_and_sounds_are_what_callers_need() -> None:
    tokens = array(8, 512, dtype=jnp.int32)
    params = {"embed": array(4096, 256), "layers": [array(256, 256)] * 2, "head": array(256, 4096)}
    assert AdviceKind.OUTPUTS not in kinds(compiled(prefill, params, tokens))
    params = {"embed": array(4096, 256), "hidden": array(256, 256), "last": array(256, 80)}
    assert AdviceKind.OUTPUTS not in kinds(compiled(sound, params, tokens))


def test_log_probabilities_are_removed_with_the_scores_they_come_from() -> None:
    def score(params: Any, tokens: Any) -> Any:
        return jax.nn.log_softmax(params["embed"][tokens] @ params["head"])

    def score_last(params: Any, tokens: Any) -> Any:
        return jax.nn.log_softmax(params["embed"][tokens][:, -1:] @ params["head"])

    arguments = {"embed": array(4096, 64), "head": array(64, 4096)}, array(8, 512, dtype=jnp.int32)
    before = compiled(score, *arguments)
    assert_close(given(before, AdviceKind.OUTPUTS), before, compiled(score_last, *arguments))
