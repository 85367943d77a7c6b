"""`capture.preview`: what the jitted functions of a block would need, without executing the large ones."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from tb_memplugin import capture

WIDTH = 2304


def init() -> list[jax.Array]:
    return [jax.random.normal(key, (WIDTH, WIDTH)) for key in jax.random.split(jax.random.key(0), 4)]


@jax.jit
def train_step(params: list[jax.Array], x: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    def loss(params: list[jax.Array]) -> jax.Array:
        hidden = x
        for weight in params:
            hidden = jnp.tanh(hidden @ weight)
        return (hidden**2).mean()

    value, grads = jax.value_and_grad(loss)(params)
    return [weight - 0.1 * grad for weight, grad in zip(params, grads, strict=True)], value


def train(steps: int) -> float:
    params, value = jax.jit(init)(), jnp.zeros(())
    for _ in range(steps):
        params, value = train_step(params, jnp.ones((8, WIDTH)))
    return float(value)


@pytest.mark.slow
def test_a_preview_needs_what_the_compiled_functions_need() -> None:
    found = capture.preview(train, 3)
    assert [(each.name, each.jit.calls) for each in found.jits] == [("init", 1), ("train_step", 3)]
    params = jax.eval_shape(init)
    exact = capture.compile(train_step.lower(params, jax.ShapeDtypeStruct((8, WIDTH), jnp.float32)))
    from tb_memplugin.analysis.usage.live_bytes import reserved_bytes
    from tb_memplugin.capture.programs import main_memory

    assert found.jits[1].reserved_bytes == reserved_bytes(main_memory(exact)) > 160 << 20
    assert "train_step (5 arrays of 81.1 MiB" in str(found) and "At most" in str(found)


@pytest.mark.slow
def test_functions_that_were_called_before_are_executed_again_afterwards_only() -> None:
    params, x = jax.jit(init)(), jnp.ones((8, WIDTH))
    before = train_step(params, x)
    with capture.preview() as found:
        within = train_step(params, x)
        small = jnp.arange(10).sum()
    after = train_step(params, x)
    assert [each.name for each in found.jits] == ["train_step"]
    assert float(within[1]) == 1 and float(within[0][0].sum()) == 0
    assert int(small) == 45 and float(after[1]) == float(before[1]) != 1


@pytest.mark.slow
def test_a_new_jit_of_a_function_that_was_called_before_is_heard() -> None:
    def made() -> jax.Array:
        return jnp.ones((WIDTH, 4 * WIDTH))

    jax.jit(made)()
    with capture.preview() as found:
        jax.jit(made)()
    assert [each.name for each in found.jits] == ["made"]


def test_a_block_without_large_functions_says_so() -> None:
    with capture.preview() as found:
        jnp.ones(3)
    assert "No jitted function with more than 64.0 MiB" in str(found) and found.bytes == 0
