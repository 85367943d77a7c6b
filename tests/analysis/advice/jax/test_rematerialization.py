from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import Array
from support.advised import (
    BARRIERS,
    LAYERS,
    MIB,
    WIDTH,
    Tree,
    adam,
    array,
    assert_close,
    compiled,
    given,
    kinds,
    layer,
    scanned,
    sgd,
    stacked_weights,
    stepped,
    unrolled,
    weights,
)

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.analysis.usage.live_bytes import peak


def gated(weights: Tree, x: Array) -> Array:
    """Keep several tensors in the layer, and read its input twice."""
    h = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    h = jax.nn.gelu(h @ weights["up"]) * jax.nn.sigmoid(h @ weights["up"] * 2)
    made: Array = x + h @ weights["down"]
    return made


def attentive(weights: Tree, x: Array) -> Array:
    """Use sequences of 128: the memory that attention keeps grows quadratically with their length."""
    heads = (x @ weights["up"]).reshape(-1, 128, 2, 8, WIDTH // 8)
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", heads[:, :, 0], heads[:, :, 1]))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", scores, heads[:, :, 1])
    return gated(weights, x + mixed.reshape(x.shape))


@pytest.mark.parametrize("batch", [1024, 4096, 8192])
@pytest.mark.parametrize("one", [layer, gated, attentive])
def test_unrolled_layers(one: Any, batch: int) -> None:
    arguments = weights(), array(batch, WIDTH)
    before = compiled(jax.value_and_grad(unrolled(one)), *arguments, options=BARRIERS)
    after = compiled(jax.value_and_grad(unrolled(jax.checkpoint(one))), *arguments, options=BARRIERS)
    advice = given(before, AdviceKind.REMATERIALIZATION)
    assert advice.title == "Rematerialize layer_*"
    name = one.__name__
    assert advice.change == f"{name} = jax.checkpoint({name})  # the function of one layer_*"
    assert_close(advice, before, after)
    assert AdviceKind.REMATERIALIZATION not in kinds(after)


@pytest.mark.parametrize("one", [layer, gated, attentive])
@pytest.mark.parametrize("optimizer", [sgd, adam])
def test_layers_in_a_training_step(one: Any, optimizer: Any) -> None:
    before = stepped(optimizer, 4096, unrolled(one), options=BARRIERS)
    after = stepped(optimizer, 4096, unrolled(jax.checkpoint(one)), options=BARRIERS)
    assert_close(given(before, AdviceKind.REMATERIALIZATION), before, after)


def unnamed(one: Any) -> Any:
    """Write the layer without any names."""

    def loss(params: Tree, x: Array) -> Array:
        for i in range(LAYERS):
            x = one(params[f"layer_{i}"], x)
        return (x**2).mean()

    return loss


def inline(params: Tree, x: Array) -> Array:
    for i in range(LAYERS):
        weights = params[f"layer_{i}"]
        x = x + jnp.tanh(x @ weights["up"]) @ weights["down"]
    return (x**2).mean()


@pytest.mark.parametrize("batch", [1024, 8192])
@pytest.mark.parametrize("one", [layer, gated, attentive])
def test_layers_without_names(one: Any, batch: int) -> None:
    arguments = weights(), array(batch, WIDTH)
    before = compiled(jax.value_and_grad(unnamed(one)), *arguments, options=BARRIERS)
    after = compiled(jax.value_and_grad(unnamed(jax.checkpoint(one))), *arguments, options=BARRIERS)
    advice = given(before, AdviceKind.REMATERIALIZATION)
    assert advice.title.startswith(f"Rematerialize {one.__name__} (")
    assert advice.change.startswith(f"{one.__name__} = jax.checkpoint({one.__name__})")
    assert_close(advice, before, after)
    assert AdviceKind.REMATERIALIZATION not in kinds(after)


def test_a_loop_whose_body_is_no_function() -> None:
    arguments = weights(), array(4096, WIDTH)
    before = compiled(jax.value_and_grad(inline), *arguments, options=BARRIERS)
    after = compiled(jax.value_and_grad(unnamed(jax.checkpoint(layer))), *arguments, options=BARRIERS)
    advice = given(before, AdviceKind.REMATERIALIZATION)
    assert advice.title.startswith("Rematerialize the loop in inline (")
    assert_close(advice, before, after)


def test_operations_that_repeat_and_keep_nothing_are_no_layers() -> None:
    def loss(params: Tree, x: Array) -> Array:
        return sum((jnp.sum(x @ leaf) for leaf in params), start=jnp.zeros(()))

    before = compiled(jax.value_and_grad(loss), [array(WIDTH, WIDTH)] * 6, array(4096, WIDTH), options=BARRIERS)
    assert AdviceKind.REMATERIALIZATION not in kinds(before)


def test_the_evidence_is_what_the_backward_pass_reads() -> None:
    before = compiled(jax.value_and_grad(unrolled()), weights(), array(4096, WIDTH), options=BARRIERS)
    advice = given(before, AdviceKind.REMATERIALIZATION)
    kept = 4096 * 2 * WIDTH * 4  # the result of tanh in each layer
    assert advice.bytes == LAYERS * kept == 96 * MIB
    assert [before.allocations.op_name[row].split("/")[-1] for row in advice.rows.tolist()] == ["tanh"] * LAYERS


@pytest.mark.parametrize("batch", [1024, 8192])
@pytest.mark.parametrize("one", [layer, gated, attentive])
def test_the_body_of_a_scan(one: Any, batch: int) -> None:
    arguments = stacked_weights(), array(batch, WIDTH)
    before = compiled(jax.value_and_grad(scanned(one)), *arguments)
    after = compiled(jax.value_and_grad(scanned(jax.checkpoint(one))), *arguments)
    advice = given(before, AdviceKind.REMATERIALIZATION)
    assert advice.title == f"Rematerialize the body of a scan over {LAYERS} iterations"
    assert ", in scanned.<locals>.<lambda> (" in advice.sentence
    assert "CPU" not in advice.sentence
    assert_close(advice, before, after)
    assert AdviceKind.REMATERIALIZATION not in kinds(after)


def test_a_scan_that_is_run_twice_is_one_change() -> None:
    def twice(one: Any) -> Any:
        return lambda p, x: scanned(one)(p["encoder"], x) + scanned(one)(p["decoder"], 2 * x)

    arguments = {"encoder": stacked_weights(), "decoder": stacked_weights()}, array(4096, WIDTH)
    before = compiled(jax.value_and_grad(twice(layer)), *arguments)
    after = compiled(jax.value_and_grad(twice(jax.checkpoint(layer))), *arguments)
    advice = given(before, AdviceKind.REMATERIALIZATION)
    assert advice.title == f"Rematerialize the body of 2 scans over {LAYERS} iterations"
    assert len(advice.rows) == 4  # the input and the output of tanh in each layer
    # The compiler keeps one more of the zeros that both stacks start from, because it no longer copies it.
    assert (
        0.7 * (peak(before).bytes - peak(after).bytes)
        < advice.saving.expected
        <= peak(before).bytes - peak(after).bytes
    )


def test_a_policy_that_keeps_products() -> None:
    policy = jax.checkpoint_policies.dots_saveable
    arguments = weights(), array(8192, WIDTH)
    before = compiled(jax.value_and_grad(unrolled(gated)), *arguments, options=BARRIERS)
    kept = unrolled(jax.checkpoint(gated, policy=policy))
    after = compiled(jax.value_and_grad(kept), *arguments, options=BARRIERS)
    real = (peak(before).bytes - peak(after).bytes) / MIB
    sentence = given(before, AdviceKind.REMATERIALIZATION).sentence
    said = re.search(r"no matrix product, it lowers the peak by (\S+) MiB \(up to (\S+) MiB\)", sentence)
    assert said is not None
    safe, most = map(float, said.groups())
    assert safe <= real and abs(most - real) <= 0.1 * real


@pytest.mark.parametrize("function", [unrolled(), unrolled(gated)])
def test_nothing_is_kept_where_nothing_is_trained(function: Any) -> None:
    assert AdviceKind.REMATERIALIZATION not in kinds(compiled(function, weights(), array(4096, WIDTH)))


def test_a_single_layer_is_left_alone() -> None:
    """Expect nothing: recomputing is useless where the backward pass follows immediately."""

    def loss(params: Tree, x: Array) -> Array:
        with jax.named_scope("layer_0"):
            return jnp.sum(layer(params, x) ** 2)

    one = weights()["layer_0"]
    assert AdviceKind.REMATERIALIZATION not in kinds(compiled(jax.value_and_grad(loss), one, array(4096, WIDTH)))


@pytest.mark.skipif(jax.__version_info__ >= (0, 12), reason="since JAX 0.12, the CPU's compiler keeps checkpoints")
@pytest.mark.parametrize("one", [layer, gated])
def test_advice_mentions_that_the_cpu_compiler_undoes_checkpointing(one: Any) -> None:
    """Check the default; the other tests here turn it off and get the saving."""
    arguments = weights(), array(4096, WIDTH)
    before = compiled(jax.value_and_grad(unrolled(one)), *arguments)
    after = compiled(jax.value_and_grad(unrolled(jax.checkpoint(one))), *arguments)
    advice = given(before, AdviceKind.REMATERIALIZATION)
    assert peak(after).bytes > peak(before).bytes - advice.saving.expected // 2
    assert f"compiler_options={BARRIERS}" in advice.sentence
