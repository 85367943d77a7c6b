from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from support.advised import MIB, WIDTH, array, assert_close, compiled, given, kinds, unrolled, weights

from tb_memplugin.analysis.advice import AdviceKind

ROWS = 4096


def pooled(raw: Any) -> Any:
    return raw.reshape(ROWS, WIDTH, 8).mean(-1)


def gradients(x: Any, params: Any) -> Any:
    return jax.value_and_grad(unrolled())(params, x)


def test_an_argument_that_is_read_first_and_never_again() -> None:
    """Expect what a second program saves that takes the pooled array, an eighth of the first one's argument."""
    before = compiled(lambda raw, params: gradients(pooled(raw), params), array(ROWS, 8 * WIDTH), weights())
    advice = given(before, AdviceKind.LATE_FREE)
    assert advice.title == "Free raw before the peak"
    assert advice.bytes == 64 * MIB
    assert_close(advice, before, compiled(gradients, array(ROWS, WIDTH), weights()))


def test_several_of_them_are_one_change() -> None:
    def step(raw: Any, more: Any, params: Any) -> Any:
        return gradients(pooled(raw), params), gradients(pooled(more) * 2, params)

    wide = array(ROWS, 8 * WIDTH)
    advice = given(compiled(step, wide, wide, weights()), AdviceKind.LATE_FREE)
    assert advice.title == "Free raw, more before the peak"
    assert advice.bytes == 128 * MIB


def test_a_prepared_array_that_is_as_large_may_save_nothing() -> None:
    """Expect no advice: a compiler may store a second program's argument once more, such as padded."""
    before = compiled(lambda raw, params: gradients(jnp.sort(raw, axis=1), params), array(ROWS, WIDTH), weights())
    assert AdviceKind.LATE_FREE not in kinds(before)


def test_what_a_loop_reads_step_by_step_is_needed_throughout() -> None:
    def encode(params: Any, x: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            return jnp.tanh(x + h @ params), h

        last, states = jax.lax.scan(cell, jnp.zeros_like(x[0]), x)
        wide = jnp.concatenate([jnp.sort(states[-1])] * 512, axis=1)
        return jnp.sort(wide, axis=1).sum() + last.sum()

    assert AdviceKind.LATE_FREE not in kinds(compiled(encode, array(256, 256), array(64, 64, 256)))


def test_what_is_read_together_with_weights_cannot_be_read_elsewhere() -> None:
    """Expect no advice: the code that reads x, or the labels, is the model."""

    def step(params: Any, x: Any, labels: Any) -> Any:
        def loss(params: Any) -> Any:
            wide = jnp.tanh(x @ params["in"])
            return ((wide @ params["out"] - labels) ** 2).mean() + jnp.sort(wide, axis=1)[:, 0].mean()

        return jax.grad(loss)(params)

    params = {"in": array(2048, 8192), "out": array(8192, 2048)}
    assert AdviceKind.LATE_FREE not in kinds(compiled(step, params, array(2048, 2048), array(2048, 2048)))


def test_weights_that_are_read_first_and_never_again_are_the_caller_s() -> None:
    """Expect no advice: the caller keeps the weights for the next call."""

    def serve(params: Any, x: Any) -> Any:
        x = x @ params["embed"] @ params["mix"]
        wide = jnp.sort(jnp.concatenate([jnp.sin(x)] * 8, axis=1), axis=1)
        return jnp.sort(wide * 2, axis=0).sum(1)

    params = {"embed": array(2048, 2048), "mix": array(2048, 2048)}
    assert AdviceKind.LATE_FREE not in kinds(compiled(serve, params, array(1024, 2048)))
