from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest
from jax.experimental.layout import Format, Layout
from jax.sharding import SingleDeviceSharding
from support.advised import (
    BARRIERS,
    MIB,
    WIDTH,
    adam,
    array,
    assert_close,
    compiled,
    decode,
    decode_arguments,
    given,
    kinds,
    layer,
    scanned,
    sgd,
    step_arguments,
    stepped,
    unrolled,
    weights,
)

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording

LOSSES = {
    "plain": (unrolled(), False),
    "checkpoint": (unrolled(jax.checkpoint(layer)), False),
    "scan": (scanned(), True),
    "scan of checkpoint": (scanned(jax.checkpoint(layer)), True),
}


@pytest.mark.parametrize("optimizer", [sgd, adam])
@pytest.mark.parametrize("model", LOSSES)
@pytest.mark.parametrize("batch", [256, 4096])
def test_a_training_step(optimizer: Callable[..., Any], model: str, batch: int) -> None:
    loss, stacked = LOSSES[model]
    before = stepped(optimizer, batch, loss, donated=(), stacked=stacked, options=BARRIERS)
    after = stepped(optimizer, batch, loss, stacked=stacked, options=BARRIERS)
    advice = given(before, AdviceKind.DONATION)
    name = "state" if optimizer is adam else "momentum"
    assert advice.change == f"step = jax.jit(step, donate_argnames=('params', '{name}'))"
    assert advice.bytes == (72 if optimizer is adam else 48) * MIB
    assert_close(advice, before, after)
    assert AdviceKind.DONATION not in kinds(after)


def test_one_of_two_that_is_donated_already_leaves_the_other() -> None:
    before, after = stepped(sgd, 256, donated=(0,)), stepped(sgd, 256)
    advice = given(before, AdviceKind.DONATION)
    assert advice.title == "Donate momentum"
    assert advice.change.startswith("step = jax.jit(step, donate_argnames=('momentum',))")
    assert_close(advice, before, after)


def test_results_in_another_order_than_the_arguments() -> None:
    """Check the pairing: JAX reuses the memory of the first argument for the first result of the same shape."""

    def turned(*arguments: Any) -> Any:
        return sgd(unrolled())(*arguments)[::-1]

    arguments = step_arguments(256)
    before, after = compiled(turned, *arguments), compiled(turned, *arguments, donate_argnums=(0, 1))
    assert_close(given(before, AdviceKind.DONATION), before, after)


def test_a_cache_of_keys_and_values() -> None:
    before = compiled(decode, *decode_arguments())
    advice = given(before, AdviceKind.DONATION)
    assert advice.title == "Donate cache"
    assert "donate_argnames=('cache',)" in advice.change
    assert_close(advice, before, compiled(decode, *decode_arguments(), donate_argnums=1))


def test_an_argument_that_is_read_after_its_update_must_be_copied() -> None:
    def both(w: Any, x: Any) -> Any:
        new = w + 1
        return new, (x @ new) @ w

    arguments = array(2048, 2048), array(64, 2048)
    before, after = compiled(both, *arguments), compiled(both, *arguments, donate_argnums=0)
    assert peak(before).bytes == peak(after).bytes
    assert AdviceKind.DONATION not in kinds(before)


@pytest.mark.parametrize(
    "function",
    [
        lambda params, x: jax.grad(unrolled())(params, x),  # the shape of the weights, but not an update of them
        lambda params, x: unrolled()(params, x),
    ],
)
def test_nothing_comes_back(function: Callable[..., Any]) -> None:
    assert AdviceKind.DONATION not in kinds(compiled(function, weights(), array(256, WIDTH)))


def test_small_programs_are_left_alone() -> None:
    assert not kinds(compiled(lambda x: x + 1, array(64, 64)))


def test_a_result_of_another_layout_cannot_reuse_the_argument() -> None:
    one = SingleDeviceSharding(jax.devices()[0])
    rows, columns = (Format(Layout(major_to_minor=order), one) for order in ((0, 1), (1, 0)))

    def decay(w: Any, x: Any) -> Any:
        return w * 0.9 + x.sum()

    def program(given_as: Any, returned_as: Any, **options: Any) -> Recording:
        shapes = array(1024, 2048), array(8)
        return compiled(decay, *shapes, in_shardings=(given_as, one), out_shardings=returned_as, **options)

    assert_close(
        given(program(rows, rows), AdviceKind.DONATION), program(rows, rows), program(rows, rows, donate_argnums=0)
    )
    assert peak(program(rows, columns, donate_argnums=0)).bytes == peak(program(rows, columns)).bytes
    assert AdviceKind.DONATION not in kinds(program(rows, columns))
