"""Code that wraps layers in jax.checkpoint, run on models of each library, and what it then saves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx
from programs.stored import Stored
from support.advised import BARRIERS, Tree, array, assert_close, compiled, given

from tb_memplugin.analysis.advice import Advice, AdviceKind
from tb_memplugin.analysis.advice.support.layer_code import Operations, call_site, called_functions
from tb_memplugin.analysis.advice.support.passes import program_passes
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text

WIDTH, LAYERS, BATCH = 256, 4, 4096


def grown(x: Any, up: Any, down: Any) -> Any:
    return x + jnp.tanh(jax.nn.gelu(x @ up)) @ down


class LinenBlock(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return x + nn.Dense(WIDTH)(jnp.tanh(nn.gelu(nn.Dense(4 * WIDTH)(x))))


def linen_loss(block: Any) -> Callable[[Tree, Any], Any]:
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for _ in range(LAYERS):
                x = block()(x)
            return x

    def loss(params: Tree, x: Any) -> Any:
        return (Model().apply(params, x) ** 2).mean()  # type: ignore[operator]

    loss.shapes = jax.eval_shape(Model().init, jax.random.key(0), array(2, WIDTH))  # type: ignore[attr-defined]
    return loss


class NnxBlock(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.up, self.down = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs), nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return x + self.down(jnp.tanh(nnx.gelu(self.up(x))))


def nnx_loss() -> tuple[Callable[[Tree, Any], Any], Tree]:
    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.blocks = nnx.List([NnxBlock(rngs) for _ in range(LAYERS)])

        def __call__(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return x

    graph, state = nnx.split(nnx.eval_shape(lambda: Model(nnx.Rngs(0))))
    return lambda params, x: (nnx.merge(graph, params)(x) ** 2).mean(), state


def plain_loss(layer: Any) -> Callable[[Tree, Any], Any]:
    def loss(params: Tree, x: Any) -> Any:
        for up, down in params:
            x = layer(x, up, down)
        return (x**2).mean()

    return loss


def compiled_gradient(loss: Any, params: Tree) -> Recording:
    return compiled(jax.value_and_grad(loss), params, array(BATCH, WIDTH), options=BARRIERS)


def run(piece: Advice, **names: Any) -> dict[str, Any]:
    scope = {"jax": jax, "jnp": jnp, "nn": nn, "nnx": nnx} | names
    exec(piece.change, scope)
    return scope


def test_a_plain_function() -> None:
    params = [(array(WIDTH, 4 * WIDTH), array(4 * WIDTH, WIDTH))] * LAYERS
    before = compiled_gradient(plain_loss(grown), params)
    piece = given(before, AdviceKind.REMATERIALIZATION)
    assert piece.change.startswith("grown = jax.checkpoint(grown)")
    assert_close(piece, before, compiled_gradient(plain_loss(run(piece, grown=grown)["grown"]), params))


def test_a_linen_module() -> None:
    loss: Any = linen_loss(LinenBlock)
    before = compiled_gradient(loss, loss.shapes)
    piece = given(before, AdviceKind.REMATERIALIZATION)
    assert piece.change.startswith("LinenBlock = nn.remat(LinenBlock)")
    after: Any = linen_loss(run(piece, LinenBlock=LinenBlock)["LinenBlock"])
    assert "CheckpointLinenBlock_0" in after.shapes["params"]
    assert_close(piece, before, compiled_gradient(after, after.shapes))


def test_an_nnx_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NnxBlock, "__call__", NnxBlock.__call__)  # undoes the change after the test
    before = compiled_gradient(*nnx_loss())
    piece = given(before, AdviceKind.REMATERIALIZATION)
    assert piece.change.startswith("NnxBlock.__call__ = nnx.remat(NnxBlock.__call__)")
    run(piece, NnxBlock=NnxBlock)
    assert_close(piece, before, compiled_gradient(*nnx_loss()))


def test_an_equinox_module() -> None:
    eqx = pytest.importorskip("equinox")

    class Block(eqx.Module):  # type: ignore[misc, name-defined]
        up: Any
        down: Any

        def __init__(self, key: Any) -> None:
            self.up, self.down = (eqx.nn.Linear(*pair, key=key) for pair in ((WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)))

        def __call__(self, x: Any) -> Any:
            return x + jax.vmap(self.down)(jnp.tanh(jax.nn.gelu(jax.vmap(self.up)(x))))

    blocks = eqx.filter_eval_shape(lambda: [Block(key) for key in jax.random.split(jax.random.key(0), LAYERS)])

    def loss(blocks: Tree, x: Any) -> Any:
        for layer in blocks:
            x = layer(x)
        return (x**2).mean()

    piece = given(compiled_gradient(loss, blocks), AdviceKind.REMATERIALIZATION)
    assert piece.change.startswith("x = eqx.filter_checkpoint(layer)(x)")
    block, x = Block(jax.random.key(0)), jnp.ones((2, WIDTH))
    np.testing.assert_allclose(run(piece, eqx=eqx, layer=block, x=x)["x"], block(x), rtol=1e-5)


def test_two_loops_of_different_layers_are_one_change() -> None:
    def encode(x: Any, up: Any, down: Any) -> Any:
        return grown(x, up, down)

    def decode(x: Any, up: Any, down: Any) -> Any:
        return x + jax.nn.sigmoid(x @ up * 2) @ down

    def loss(encode: Any, decode: Any) -> Any:
        def both(params: Tree, x: Any) -> Any:
            for up, down in params["encoder"]:
                x = encode(x, up, down)
            for up, down in params["decoder"]:
                x = decode(x, up, down)
            return (x**2).mean()

        return both

    layers = [(array(WIDTH, 4 * WIDTH), array(4 * WIDTH, WIDTH))] * LAYERS
    params = {"encoder": layers, "decoder": layers}
    before = compiled_gradient(loss(encode, decode), params)
    piece = given(before, AdviceKind.REMATERIALIZATION)
    found = run(piece, encode=encode, decode=decode)
    assert found["encode"] is not encode
    assert found["decode"] is not decode
    assert_close(piece, before, compiled_gradient(loss(found["encode"], found["decode"]), params))


def test_library_modules_in_a_loop_are_no_layers() -> None:
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for _ in range(LAYERS):
                x = jnp.tanh(nn.Dense(WIDTH)(x))
            return x

    model: Any = Model()
    shapes = jax.eval_shape(model.init, jax.random.key(0), array(2, WIDTH))
    before = compiled_gradient(lambda params, x: (model.apply(params, x) ** 2).mean(), shapes)
    passes = program_passes(before)
    assert passes is not None
    assert not passes.layers


def test_a_network_with_a_head_is_no_layer_of_its_loop() -> None:
    """Check a loop over convolutions, and a dense layer after it, in a function that is called once."""
    loss, loop, convolution, head = range(4)
    lines = ("loss", 92), ("network", 87), ("conv", 16), ("network", 88)
    names = Text.of([name for name, _ in lines])
    numbers = np.array([line for _, line in lines], dtype=np.int32)
    stacks = Stacks(np.array([-1, loss, loop, loss], dtype=np.int32), names, Text.of(["step.py"] * 4), numbers)
    # Three convolutions, each with its activation function, and the head, whose result is small.
    leaf = np.array([*[convolution, loop] * 3, head], dtype=np.int32)
    is_product = leaf != loop
    kept, elements = np.array([*[1000.0, 500.0] * 3, 10.0]), np.array([*[1000] * 6, 10])
    operations = Operations(leaf, np.where(leaf == head, 1, 3), kept, is_product, is_product, elements)
    site = call_site(stacks, operations, 3, np.array([head], dtype=np.int32))  # its derivative has several operations
    assert site is not None
    assert site.frames == [loop, head]  # the network's own lines, and not the one that calls it


@pytest.mark.parametrize(("inside", "called"), [(["block"], ["block"]), (["attention", "perceptron"], ["<lambda>"])])
def test_a_lambda_that_calls_one_function_stands_for_it(inside: list[str], called: list[str]) -> None:
    loop, layer = range(2)
    names = ["loss", "loss.<locals>.<lambda>", *inside]
    parent = np.array([-1, loop, *[layer] * len(inside)], dtype=np.int32)
    lines = np.arange(10, 10 + len(names), dtype=np.int32)
    stacks = Stacks(parent, Text.of(names), Text.of(["step.py"] * len(names)), lines)
    found = called_functions(stacks, np.arange(2, len(names), dtype=np.int32), [loop])
    assert [stacks.function[frame].rpartition(".")[2] for frame in found] == called


def test_the_body_of_a_scan() -> None:
    def body(x: Any, weights: Any) -> Any:
        return grown(x, *weights), None

    def loss(body: Any) -> Any:
        return lambda params, x: (jax.lax.scan(body, x, params)[0] ** 2).mean()

    params = array(LAYERS, WIDTH, 4 * WIDTH), array(LAYERS, 4 * WIDTH, WIDTH)
    before = compiled_gradient(loss(body), params)
    piece = given(before, AdviceKind.REMATERIALIZATION)
    assert piece.change == "jax.lax.scan(jax.checkpoint(body), ...)"
    after = compiled_gradient(loss(jax.checkpoint(body)), params)
    assert 0.8 <= piece.saving.expected / (peak(before).bytes - peak(after).bytes) <= 1.25


@pytest.mark.parametrize(
    ("program", "target", "name"),
    [
        ("gradients_only", "v5e", "block (tests/programs/transformer.py:70)"),  # in a lambda
        # Two lines, of which one operation in the last turn is fused differently.
        ("nnx_lm", "v5p", "Block.__call__ (tests/programs/nnx_models.py:28)"),
    ],
)
def test_a_function_that_runs_in_turns_is_named(program: str, target: str, name: str) -> None:
    recordings = Stored(program, target).recordings
    main = next(r for r in recordings if r.program is not None and r.program.memory_space == 0)
    assert given(main, AdviceKind.REMATERIALIZATION).title == f"Rematerialize {name}"
