from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import Array
from support.advised import (
    IN_ORDER,
    MIB,
    NARROW_PRODUCTS,
    WIDTH,
    Tree,
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
    stepped,
    unrolled,
    weights,
)

from tb_memplugin.analysis.advice import AdviceKind, advise
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording

# float16 takes as many bytes as bfloat16, and the CPU multiplies it without widening it first.
NARROW = jnp.float16


def narrow(weights: Tree, x: Array) -> Array:
    return layer(jax.tree.map(lambda w: w.astype(NARROW), weights), x)


def mixed(params: Tree, x: Array) -> Array:
    return unrolled(narrow)(params, x.astype(NARROW))


@pytest.mark.parametrize("optimizer", [sgd, adam])
@pytest.mark.parametrize("donated", [(), (0, 1)])
@pytest.mark.parametrize("batch", [256, 4096])
def test_optimizer_state(optimizer: Callable[..., Any], donated: tuple[int, ...], batch: int) -> None:
    before = stepped(optimizer, batch, donated=donated, options=IN_ORDER)
    after = stepped(optimizer, batch, donated=donated, options=IN_ORDER, state=NARROW)
    advice = given(before, AdviceKind.DTYPE, "optimizer state")
    assert advice.bytes == (48 if optimizer is adam else 24) * MIB
    assert_close(advice, before, after)
    assert "Store optimizer state in bf16" not in titles(after)


def titles(recording: Recording) -> list[str]:
    return [piece.title for piece in advise(recording)]


@pytest.mark.parametrize("optimizer", [sgd, adam])
@pytest.mark.parametrize("donated", [(), (0, 1)])
@pytest.mark.parametrize("batch", [8192, 16384])
def test_mixed_precision(optimizer: Callable[..., Any], donated: tuple[int, ...], batch: int) -> None:
    before = stepped(optimizer, batch, donated=donated, options=NARROW_PRODUCTS)
    after = stepped(optimizer, batch, mixed, donated=donated, options=NARROW_PRODUCTS)
    advice = given(before, AdviceKind.DTYPE, "Compute")
    assert_close(advice, before, after)
    assert "Compute in bf16" not in titles(after)


def mixed_scan(params: Tree, x: Array) -> Array:
    return scanned(narrow)(params, x.astype(NARROW))


@pytest.mark.parametrize("batch", [8192, 16384])
def test_mixed_precision_of_what_a_scan_stacks_up(batch: int) -> None:
    before = stepped(sgd, batch, scanned(), stacked=True, options=NARROW_PRODUCTS)
    after = stepped(sgd, batch, mixed_scan, stacked=True, options=NARROW_PRODUCTS)
    advice = given(before, AdviceKind.DTYPE, "Compute")
    assert advice.bytes <= peak(before).bytes
    assert_close(advice, before, after)


def test_served_weights_and_their_cache() -> None:
    before = compiled(decode, *decode_arguments(), options=NARROW_PRODUCTS, donate_argnums=1)
    after = compiled(decode, *decode_arguments(NARROW, NARROW), options=NARROW_PRODUCTS, donate_argnums=1)
    advice = given(before, AdviceKind.DTYPE)
    assert advice.bytes >= 64 * MIB
    assert_close(advice, before, after)
    assert AdviceKind.DTYPE not in kinds(after)


def test_narrow_programs_are_left_alone() -> None:
    before = compiled(unrolled(), weights(jnp.bfloat16), array(256, WIDTH, dtype=jnp.bfloat16))
    assert AdviceKind.DTYPE not in kinds(before)


def test_the_cpu_widens_what_it_computes_with_and_that_is_said() -> None:
    def halved(params: Tree, x: Array) -> Array:
        return unrolled()(jax.tree.map(lambda w: w.astype(jnp.bfloat16), params), x.astype(jnp.bfloat16))

    before = compiled(jax.value_and_grad(unrolled()), weights(), array(4096, WIDTH))
    after = compiled(jax.value_and_grad(halved), weights(), array(4096, WIDTH))
    advice = given(before, AdviceKind.DTYPE, "Compute")
    assert peak(after).bytes > peak(before).bytes - advice.saving.expected // 2
    assert "the compiler widens bf16 to f32" in advice.sentence


def test_the_cpu_widens_what_it_serves_with_too() -> None:
    before = compiled(decode, *decode_arguments(), donate_argnums=1)
    after = compiled(decode, *decode_arguments(jnp.bfloat16, jnp.bfloat16), donate_argnums=1)
    assert peak(after).bytes > peak(before).bytes
    assert "the compiler widens bf16 to f32" in given(before, AdviceKind.DTYPE).sentence


def test_the_cpu_holds_narrow_state_as_it_is() -> None:
    before, after = stepped(adam, 256), stepped(adam, 256, state=jnp.bfloat16)
    advice = given(before, AdviceKind.DTYPE, "optimizer state")
    assert_close(advice, before, after)
    assert "CPU" not in advice.sentence
