from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from programs.stored import Stored
from support.advised import (
    BARRIERS,
    IN_ORDER,
    WIDTH,
    Tree,
    array,
    assert_close,
    compiled,
    given,
    kinds,
    layer,
    sgd,
    step_arguments,
    stepped,
    unrolled,
    weights,
)

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.analysis.advice.jax.microbatching import rearranged_bytes
from tb_memplugin.analysis.advice.jax.shapes import share_of_batch
from tb_memplugin.analysis.advice.support.batch import Batch, is_mixed
from tb_memplugin.analysis.dataflow.graph import dataflow_graph
from tb_memplugin.analysis.dataflow.training_step import training_step
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.model.kinds import Role

OPTIONS = BARRIERS | IN_ORDER


def in_halves(loss: Callable[[Tree, Array], Array]) -> Callable[..., Any]:
    def step(params: Tree, momentum: Tree, x: Array) -> Any:
        def add(total: Tree, part: Array) -> tuple[Tree, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, part)), None

        zeros = jax.tree.map(jnp.zeros_like, params)
        gradient, _ = jax.lax.scan(add, zeros, x.reshape(2, -1, WIDTH))
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g / 2, momentum, gradient)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum

    return step


def gelu(weights: Tree, x: Array) -> Array:
    made: Array = x + (jax.nn.gelu(x @ weights["up"]) * jax.nn.sigmoid(x @ weights["up"])) @ weights["down"]
    return made


@pytest.mark.parametrize("one", [layer, gelu])
@pytest.mark.parametrize("batch", [4096, 16384])
def test_half_a_batch_at_a_time(one: Any, batch: int) -> None:
    before = stepped(sgd, batch, unrolled(one), options=OPTIONS)
    after = compiled(in_halves(unrolled(one)), *step_arguments(batch), options=OPTIONS, donate_argnums=(0, 1))
    advice = given(before, AdviceKind.MICROBATCHING)
    assert advice.title == f"Use two microbatches of {batch // 2}"
    assert_close(advice, before, after)
    assert AdviceKind.MICROBATCHING not in kinds(after)  # it accumulates gradients already


def test_where_gradients_are_larger_than_the_batch_nothing_is_won() -> None:
    assert AdviceKind.MICROBATCHING not in kinds(stepped(sgd, 64, options=OPTIONS))


def test_a_batch_as_large_as_a_weight_is_told_from_it() -> None:
    """Check that weight gradients are not counted: for half a batch of 1024 they are as large as for the full batch."""
    before = compiled(jax.value_and_grad(unrolled(gelu)), weights(), array(2 * WIDTH, WIDTH), options=OPTIONS)
    rows = given(before, AdviceKind.MICROBATCHING).rows
    assert {before.allocations.shape[row].partition("{")[0] for row in rows.tolist()} == {
        "f32[1024,1024]",
        "f32[1024,512]",
    }
    assert not [row for row in rows.tolist() if before.allocations.op_name[row].endswith("/transpose")]


def test_programs_that_train_nothing() -> None:
    assert AdviceKind.MICROBATCHING not in kinds(compiled(unrolled(), weights(), array(4096, WIDTH)))


def recurrent(params: Tree, inputs: Array) -> Array:
    def cell(state: Array, x: Array) -> tuple[Array, Array]:
        state = jnp.tanh(x @ params["x"] + state @ params["h"])
        return state, state

    return (jax.lax.scan(cell, jnp.zeros(inputs.shape[1:]), inputs)[1] ** 2).mean()


def test_time_that_a_scan_runs_over_is_no_batch() -> None:
    shapes = {"x": array(128, 128), "h": array(128, 128)}
    advice = given(compiled(jax.grad(recurrent), shapes, array(96, 256, 128)), AdviceKind.MICROBATCHING)
    assert advice.title == "Use two microbatches of 128"
    assert "jnp.moveaxis(a.reshape(*a.shape[:1], 2, -1, *a.shape[2:]), 1, 0)" in advice.change


def test_a_recurrent_network_that_is_mapped_over_its_batch() -> None:
    def mapped(params: Tree, inputs: Array) -> Array:
        return jax.vmap(recurrent, (None, 0))(params, inputs[:, :, None]).mean()

    step = compiled(jax.grad(mapped), {"x": array(128, 128), "h": array(128, 128)}, array(512, 64, 128))
    assert given(step, AdviceKind.MICROBATCHING).title == "Use two microbatches of 256"


def convolved(params: Tree, pictures: Array) -> Array:
    x = pictures
    for weight, stride in zip(params["convolutions"], (4, 2), strict=True):
        order = ("NHWC", "HWIO", "NHWC")
        x = jnp.tanh(jax.lax.conv_general_dilated(x, weight, (stride, stride), "SAME", dimension_numbers=order))
    mean: Array = (jnp.tanh(x.reshape(len(x), -1) @ params["dense"]) ** 2).mean()
    return mean


def test_the_size_of_pictures_is_no_batch_where_convolutions_have_strides() -> None:
    """Check pictures whose height is divided by the strides, as that of a game's screen."""
    params = {"convolutions": [array(8, 8, 4, 32), array(4, 4, 32, 64)], "dense": array(11 * 11 * 64, 16)}
    advice = given(compiled(jax.grad(convolved), params, array(256, 84, 84, 4)), AdviceKind.MICROBATCHING)
    assert advice.title == "Use two microbatches of 128"


def messages(params: Tree, x: Array, source: Array, target: Array) -> Array:
    sent = jax.ops.segment_sum((x @ params["sent"])[source], target, len(x))
    mean: Array = (jnp.tanh(x @ params["own"] + sent) ** 2).mean()
    return mean


def test_the_nodes_of_a_graph_are_no_batch() -> None:
    edges = array(30000, dtype=jnp.int32)
    shapes = {"sent": array(128, 128), "own": array(128, 128)}
    step = compiled(jax.grad(messages), shapes, array(8000, 128), edges, edges)
    assert AdviceKind.MICROBATCHING not in kinds(step)


def attention(params: Tree, x: Array, mask: Array, key: Array) -> Array:
    q, k, v = jnp.split(x @ params["qkv"], 3, -1)
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) + mask)
    weights *= jax.random.bernoulli(key, 0.9, weights.shape)
    mean: Array = ((jnp.einsum("bqk,bkd->bqd", weights, v) @ params["out"]) ** 2).mean()
    return mean


def test_masks_and_random_keys_have_no_batch() -> None:
    shapes = {"qkv": array(128, 384), "out": array(128, 128)}
    arguments = shapes, array(24, 256, 128), array(256, 256), jax.eval_shape(lambda: jax.random.key(0))
    advice = given(compiled(jax.grad(attention), *arguments), AdviceKind.MICROBATCHING)
    assert advice.title == "Use two microbatches of 12"


def adapted(adapters: Tree, base: Tree, x: Array) -> Array:
    for w, pair in zip(base, adapters, strict=True):
        x = jnp.tanh(x @ w + x @ pair["a"] @ pair["b"])
    return (x**2).mean()


def test_frozen_weights_have_no_batch() -> None:
    adapters = [{"a": array(WIDTH, 8), "b": array(8, WIDTH)} for _ in range(4)]
    step = compiled(jax.grad(adapted), adapters, [array(WIDTH, WIDTH)] * 4, array(6000, WIDTH))
    assert given(step, AdviceKind.MICROBATCHING).title == "Use two microbatches of 3000"


def test_an_odd_batch_is_not_halved() -> None:
    assert AdviceKind.MICROBATCHING not in kinds(stepped(sgd, 4097, options=OPTIONS))


def test_a_single_example_is_not_split() -> None:
    assert AdviceKind.MICROBATCHING not in kinds(compiled(jax.grad(unrolled()), weights(), array(1, 8192, WIDTH)))


def test_sharded_batches_are_stated_whole_and_per_device() -> None:
    recordings = Stored("llama_fsdp", "v5e").recordings
    main = next(r for r in recordings if r.program is not None and r.program.memory_space == 0)
    advice = given(main, AdviceKind.MICROBATCHING)
    assert advice.title == "Use two microbatches of 8, 2 on each device"
    assert "jnp.moveaxis(a.reshape(-1, 2, *a.shape[1:]), 1, 0)" in advice.change


def test_inputs_whose_examples_lie_next_to_each_other_may_be_copied() -> None:
    main = next(r for r in Stored("clicks", "v5e").recordings if r.program is not None and r.program.memory_space == 0)
    table = main.allocations
    rows = np.flatnonzero(table.op_name.where(lambda name: name.startswith("batch[")) & (table.defined < 0))
    innermost = [table.size[row] for row in rows.tolist() if "{0,1:" in table.shape[row]]
    assert len(innermost) == 2 < len(rows)  # the labels have one dimension
    assert sorted(rearranged_bytes(main, Batch(0, 8192, 4, rows)).tolist()) == sorted(innermost)
    assert not len(rearranged_bytes(main, Batch(1, 26, 1, rows)))


def one_sequence(params: Tree, x: Array) -> Array:
    q, k, v = jnp.split((x @ params["qkv"]).reshape(len(x), 4, -1), 3, -1)
    weights = jax.nn.softmax(jnp.einsum("qhd,khd->hqk", q, k))
    mean: Array = ((jnp.einsum("hqk,khd->qhd", weights, v).reshape(x.shape) @ params["out"]) ** 2).mean()
    return mean


def test_positions_that_attend_to_each_other_are_no_batch() -> None:
    shapes = {"qkv": array(128, 384), "out": array(128, 128)}
    assert AdviceKind.MICROBATCHING not in kinds(compiled(jax.grad(one_sequence), shapes, array(1024, 128)))


def contrastive(params: Tree, images: Array, texts: Array) -> Array:
    one, other = (jnp.tanh(x @ params["up"]) @ params["down"] for x in (images, texts))
    mean: Array = -jnp.diagonal(jax.nn.log_softmax(one @ other.T)).mean()
    return mean


def test_examples_that_are_compared_with_each_other_cannot_be_split() -> None:
    shapes = {"up": array(128, 512), "down": array(512, 64)}
    step = compiled(jax.grad(contrastive), shapes, array(2048, 128), array(2048, 128))
    assert AdviceKind.MICROBATCHING not in kinds(step)


def test_examples_are_compared_where_their_scores_are_in_other_memory() -> None:
    shapes = {"up": array(128, 512), "down": array(512, 64)}
    step = compiled(jax.grad(contrastive), shapes, array(2048, 128), array(2048, 128))
    graph, passes = dataflow_graph(step), training_step(step)
    assert graph is not None and passes is not None
    inputs = np.flatnonzero((roles(step) == Role.INPUT) & (graph.values.argument[graph.value] >= 0))
    scores = step.allocations.shape.where(lambda text: "[2048,2048]" in text)
    elsewhere = replace(graph, value=np.where(scores, -1, graph.value))
    assert scores.any() and is_mixed(step, elsewhere, passes, inputs, 2048)
    assert not is_mixed(step, elsewhere, passes, inputs, 1024)


def test_steps_in_one_program_are_no_batch() -> None:
    one_step = sgd(unrolled())

    def train(params: Tree, momentum: Tree, batches: Array) -> Any:
        return jax.lax.fori_loop(0, 4, lambda i, state: one_step(*state, batches[i]), (params, momentum))

    params, momentum, _ = step_arguments(8192)
    step = compiled(train, params, momentum, array(4, 8192, WIDTH), donate_argnums=(0, 1))
    assert given(step, AdviceKind.MICROBATCHING).title == "Use two microbatches of 4096"


@pytest.mark.parametrize(
    ("shape", "share"),
    [
        ("f32[256,512]{1,0:T(8,128)}", 0.5),
        ("f32[128,32,32,160]{0,3,2,1:T(8,128)}", 0.8),  # 160 channels take two tiles
        ("f32[128,32,32,128]{0,3,2,1:T(8,128)}", 0.5),
        ("f32[256,32,32,160]{0,3,2,1:T(8,128)}", 0.5),  # half of the batch fills a tile
        ("f32[128,512]{1,0}", 0.5),
    ],
)
def test_a_part_of_the_batch_that_fills_no_tile_takes_more_than_its_share(shape: str, share: float) -> None:
    assert share_of_batch(shape, 256 if "256" in shape else 128, 2) == share
