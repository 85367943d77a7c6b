"""Code in advice, run unchanged on real programs that define the names in it."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from support.advised import Tree, array, compiled, decode, decode_arguments, given, sgd, stepped, unrolled, weights

from tb_memplugin.analysis.advice import AdviceKind, advise
from tb_memplugin.analysis.advice.jax.idle_arguments import LATE_FREE_CODE as FREE
from tb_memplugin.analysis.advice.jax.idle_arguments import offload_code
from tb_memplugin.analysis.advice.jax.replication import CODE
from tb_memplugin.analysis.advice.jax.schedule import CODE as SCHEDULE
from tb_memplugin.analysis.advice.jax.schedule import OPTIONS, ORDERED
from tb_memplugin.analysis.advice.jax.shapes import code_in_parts
from tb_memplugin.analysis.advice.support.narrowing import LION
from tb_memplugin.model.program import Backend

WIDTH = 1024


def run(code: str, **names: Any) -> dict[str, Any]:
    """Run code with these names bound, as a script that has imported JAX and Optax."""
    bound = {
        "functools": functools,
        "jax": jax,
        "jnp": jnp,
        "optax": optax,
        "NamedSharding": NamedSharding,
        "PartitionSpec": PartitionSpec,
    }
    scope = bound | names
    exec(code, scope)
    return scope


def zeros(shapes: Tree) -> Tree:
    return jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)


def test_donated_arguments_are_deleted() -> None:
    code = given(stepped(sgd, 256, donated=()), AdviceKind.DONATION).change
    params, momentum, x = zeros((weights(), weights(), array(8, 512)))
    run(code, step=sgd(unrolled()))["step"](params, momentum, x)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves((params, momentum)))


def test_names_still_fit_where_jax_drops_an_unused_argument() -> None:
    def step(unused: Any, params: Any, x: Any) -> Any:
        return params * 2 + x.sum()

    code = given(compiled(step, array(4), array(WIDTH, WIDTH), array(8)), AdviceKind.DONATION).change
    params = jnp.zeros((WIDTH, WIDTH))
    run(code, step=step)["step"](jnp.zeros(4), params, jnp.zeros(8))
    assert params.is_deleted()


OPTIMIZERS = {
    "adamw": (optax.adamw(1e-3), {"mu"}),
    "sgd": (optax.sgd(1e-3, momentum=0.9), {"trace"}),
    "rmsprop": (optax.rmsprop(1e-3), {"nu"}),
    "adagrad": (optax.adagrad(1e-3), {"sum_of_squares"}),
    "clipped": (optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3)), {"mu"}),
}


def test_lion_s_code_runs() -> None:
    state = run(LION, learning_rate=1e-3)["optimizer"].init({"w": jnp.ones((4, 4))})
    assert state[0].mu["w"].dtype == jnp.bfloat16


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_keep_their_state_in_bf16_after_an_update(name: str) -> None:
    optimizer, narrow = OPTIMIZERS[name]
    params = {"w": array(WIDTH, WIDTH)}

    def step(params: Tree, state: Tree, x: Any) -> Any:
        gradients = jax.grad(lambda p: ((x @ p["w"]) ** 2).mean())(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    program = compiled(step, params, jax.eval_shape(optimizer.init, params), array(64, WIDTH), donate_argnums=(0, 1))
    code = given(program, AdviceKind.DTYPE, "Store").change
    found = run(code, optimizer=optimizer, learning_rate=1e-3, momentum=0.9)["optimizer"]
    small = {"w": jnp.ones((4, 4))}
    state = found.init(small)
    for _ in range(2):
        updates, state = found.update(small, state, small)
        small = optax.apply_updates(small, updates)
    for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
        text = jax.tree_util.keystr(path)
        if leaf.ndim == 0:
            assert leaf.dtype == jnp.int32 or "count" not in text, text
        else:
            assert (leaf.dtype == jnp.bfloat16) == any(f".{field}" in text for field in narrow), text
    assert small["w"].dtype == jnp.float32


def test_state_without_a_library_is_cast_and_counters_are_not() -> None:
    code = given(stepped(sgd, 256), AdviceKind.DTYPE, "optimizer state").change
    momentum = {"w": jnp.ones((4, 4)), "count": jnp.zeros((), jnp.int32)}
    found = run(code, momentum=momentum)["momentum"]
    assert (found["w"].dtype, found["count"].dtype) == (jnp.bfloat16, jnp.int32)


def test_weights_and_caches_of_inference_are_cast() -> None:
    code = given(compiled(decode, *decode_arguments(), donate_argnums=1), AdviceKind.DTYPE).change
    params, cache, *_ = zeros(decode_arguments())
    found = run(code, params=params, cache=cache)
    assert all(leaf.dtype == jnp.bfloat16 for leaf in jax.tree.leaves(found["cache"]))


def test_mixed_precision_casts_floating_values_only() -> None:
    program = compiled(jax.value_and_grad(unrolled()), weights(), array(16384, 512))
    code = given(program, AdviceKind.DTYPE, "Compute").change
    found = run(code, params={"w": jnp.ones(3)}, inputs={"x": jnp.ones(3), "labels": jnp.ones(3, int)})
    assert found["params"]["w"].dtype == found["inputs"]["x"].dtype == jnp.bfloat16
    assert found["inputs"]["labels"].dtype == jnp.int32


def test_state_is_sharded_and_scalars_are_not() -> None:
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
    state = {"w": jnp.ones((8, 128)), "count": jnp.zeros((), jnp.int32)}
    state = jax.device_put(state, NamedSharding(mesh, PartitionSpec()))
    found = run(CODE.format(axis="'data'", names="state", function="step"), state=state)["state"]
    assert found["w"].sharding.spec == PartitionSpec(None, "data")
    assert found["count"].sharding.spec == PartitionSpec()


def cross_entropy(params: Tree, batch: Tree) -> Any:
    hidden = jnp.tanh(params["embed"][batch["tokens"]] @ params["up"])
    return optax.softmax_cross_entropy_with_integer_labels(hidden @ params["head"], batch["labels"]).mean()


def test_microbatches_compute_the_loss_and_the_gradients_of_the_whole_batch() -> None:
    shapes = {"embed": array(64, 256), "up": array(256, 4096), "head": array(4096, 64)}
    tokens = array(64, 128, dtype=jnp.int32)
    step = jax.value_and_grad(cross_entropy)
    code = given(compiled(step, shapes, {"tokens": tokens, "labels": tokens}), AdviceKind.MICROBATCHING).change
    key = jax.random.key(0)
    params = {name: 0.1 * jax.random.normal(key, a.shape) for name, a in shapes.items()}
    batch = {name: jax.random.randint(key, (8, 4), 0, 64) for name in ("tokens", "labels")}
    found = run(code, params=params, batch=batch, loss=cross_entropy)
    value, gradients = step(params, batch)
    assert float(found["value"]) == pytest.approx(float(value), rel=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), found["grads"], gradients)


def test_microbatches_of_a_batch_behind_time() -> None:
    def loss(params: Tree, inputs: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            state = jnp.tanh(x @ params["x"] + state @ params["h"])
            return state, state

        return (jax.lax.scan(cell, jnp.zeros(inputs.shape[1:]), inputs)[1] ** 2).mean()

    step = jax.value_and_grad(loss)
    shapes = {"x": array(128, 128), "h": array(128, 128)}
    code = given(compiled(step, shapes, array(96, 256, 128)), AdviceKind.MICROBATCHING).change
    params = {name: 0.1 * jax.random.normal(jax.random.key(0), a.shape) for name, a in shapes.items()}
    batch = jax.random.normal(jax.random.key(1), (3, 8, 128))
    found, (value, gradients) = run(code, params=params, batch=batch, loss=loss), step(params, batch)
    assert float(found["value"]) == pytest.approx(float(value), rel=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), found["grads"], gradients)


def logits(params: Tree, tokens: Any) -> Any:
    return params["embed"][tokens] @ params["head"]


def test_logits_of_the_last_position_only() -> None:
    shapes = {"embed": array(4096, 64), "head": array(64, 4096)}, array(8, 512, dtype=jnp.int32)
    code = given(compiled(logits, *shapes), AdviceKind.OUTPUTS).change
    assert run(code, x=jnp.ones((2, 5, 64)))["x"].shape == (2, 1, 64)


def test_a_step_runs_without_the_latency_hiding_scheduler() -> None:
    code = SCHEDULE.format(function="step", option=OPTIONS[Backend.GPU]) + ORDERED
    found = run(code, step=lambda x: x + 1)
    assert found["step"](1) == 2
    gradients = jax.grad(lambda tree: sum(jax.tree.leaves(found["in_order"](tree))))(({"w": 2.0}, 3.0))
    assert gradients == ({"w": 1.0}, 1.0)


def test_arguments_are_deleted_once_they_are_prepared() -> None:
    raw, more = {"a": jnp.ones((2, 8))}, jnp.ones(8)
    code = FREE.format(names="raw, more", function="step")
    found = run(code, prepare=lambda raw, more: raw["a"].mean(-1) + more.mean(), raw=raw, more=more)
    assert raw["a"].is_deleted() and more.is_deleted() and found["prepared"].shape == (2,)
    run(FREE.format(names="x", function="step"), prepare=jnp.sum, x=jnp.ones(3))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_offloaded_state_is_updated_as_before(name: str) -> None:
    optimizer = OPTIMIZERS[name][0]
    params, batch = {"w": jnp.ones((4, 4)), "scale": jnp.ones(())}, jnp.arange(8.0).reshape(2, 4)
    state = optimizer.init(params)  # tuples of named tuples, with scalars

    def loss_fn(params: Tree, batch: Any) -> Any:
        return ((batch @ params["w"] * params["scale"]) ** 2).mean()

    @jax.jit
    def usual(params: Tree, state: Tree, batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss_fn)(params, batch)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    expected = usual(*usual(params, state, batch)[:2], batch)
    code = offload_code(["state[1]"], "step")
    found = run(code, optimizer=optimizer, loss_fn=loss_fn, params=params, opt_state=state)
    step, (params, state, value) = found["step"], (params, found["opt_state"], 0.0)
    for _ in range(2):
        params, state, value = step(params, state, batch)
    assert {leaf.sharding.memory_kind for leaf in jax.tree.leaves(state)} == {"pinned_host"}
    jax.tree.map(np.testing.assert_allclose, (params, state, value), expected)


def best(params: Any, x: Any, y: Any) -> Any:
    """Return the largest products of each row of x, after a perceptron, with the rows of y."""
    for w in params:
        x = jax.nn.relu(x @ w)
    return jax.lax.top_k(x @ y.T, 4)


def test_a_large_tensor_is_computed_in_parts() -> None:
    code = given(compiled(best, [array(64, 64)] * 8, array(4096, 64), array(16384, 64)), AdviceKind.OVERSIZED).change
    x, y = jax.random.normal(jax.random.key(0), (2, 100, 64))
    found = run(code, f=lambda row: best((), row, y)[0], x=x)["y"]
    np.testing.assert_allclose(found, best((), x, y)[0], rtol=1e-4, atol=1e-4)


def test_a_large_tensor_of_a_loss_is_computed_in_parts_again_for_its_gradient() -> None:
    code = code_in_parts(stepped(sgd, 256))
    assert "jax.checkpoint(f)" in code
    x, y = jax.random.normal(jax.random.key(0), (2, 100, 64))

    def loss(x: Any) -> Any:
        return run(code, f=lambda row: jax.nn.logsumexp(row @ y.T), x=x)["y"].sum()

    expected = jax.grad(lambda x: jax.nn.logsumexp(x @ y.T, -1).sum())(x)
    np.testing.assert_allclose(jax.grad(loss)(x), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2**20,)])
def test_odd_arguments_raise_nothing(shape: tuple[int, ...]) -> None:
    program = compiled(lambda s, n: (jax.grad(lambda s: (s * s).sum())(s), n + 1), array(*shape), array())
    assert isinstance(advise(program), list)
