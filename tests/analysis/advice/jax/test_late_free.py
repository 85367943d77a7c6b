from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from support.advised import MIB, WIDTH, array, compiled, given, unrolled, weights

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.analysis.usage.live_bytes import peak


def test_an_argument_that_is_read_first_and_never_again() -> None:
    def step(raw: Any, params: Any) -> Any:
        return jax.value_and_grad(unrolled())(params, jnp.sort(raw, axis=1)[:, :WIDTH] * 2)

    before = compiled(step, array(4096, 8 * WIDTH), weights())
    advice = given(before, AdviceKind.LATE_FREE)
    assert advice.title == "Free raw before the peak"
    assert advice.bytes == 64 * MIB
    assert advice.new_peak_bytes < peak(before).bytes


def test_weights_that_are_read_first_and_never_again_are_the_caller_s() -> None:
    """Expect no advice: the caller keeps the weights for the next call."""

    def serve(params: Any, x: Any) -> Any:
        x = x @ params["embed"] @ params["mix"]
        wide = jnp.sort(jnp.concatenate([jnp.sin(x)] * 8, axis=1), axis=1)
        return jnp.sort(wide * 2, axis=0).sum(1)

    params = {"embed": array(2048, 2048), "mix": array(2048, 2048)}
    before = compiled(serve, params, array(1024, 2048))
    assert given(before, AdviceKind.LATE_FREE).title == "Free x before the peak"


def test_several_of_them_are_one_change() -> None:
    def step(raw: Any, more: Any, params: Any) -> Any:
        x = (jnp.sort(raw, axis=1) + jnp.sort(more, axis=1))[:, :WIDTH]
        return jax.value_and_grad(unrolled())(params, x)

    before = compiled(step, array(4096, 8 * WIDTH), array(4096, 8 * WIDTH), weights())
    advice = given(before, AdviceKind.LATE_FREE)
    assert advice.title == "Free raw, more before the peak"
    assert advice.bytes == 128 * MIB
