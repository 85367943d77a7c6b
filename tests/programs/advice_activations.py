"""Training steps that return activations or unchanged arguments, and knobs that do not return them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.advice_models import block
from programs.case import Case, Tree, advised
from programs.sharding import replicated, shapes, split_batch

TARGETS = ("v5e", "h100")
FEWER = {"Activations are returned": {"fewer": True}}


def _case(devices: list[Any], loss: Any, initial: Any, batch: Any, fewer: bool, count: int = 1) -> Case:
    """Return a training step of a loss with activations beside it, which the step returns unless `fewer`."""
    optimizer = optax.sgd(0.1)

    def step(params: Tree, x: Any) -> Any:
        (value, kept), grads = jax.value_and_grad(loss, has_aux=True)(params, x)
        updates, _ = optimizer.update(grads, optimizer.init(params))
        new = optax.apply_updates(params, updates)
        return (new, value) if fewer else (new, value, kept)

    one, data = replicated(devices[:count]), split_batch(devices[:count])
    return Case(jax.jit(step, donate_argnums=0), (shapes(initial, one), data(*batch)), ("parameter", "input"))


@advised(*TARGETS, **FEWER)
def returned_hidden(devices: list[Any], fewer: bool = False) -> Case:
    """A perceptron that returns what each layer computes."""

    def loss(params: Tree, x: Any) -> Any:
        kept = []
        for w in params:
            x = jax.nn.gelu(x @ w)
            kept.append(x)
        return jnp.mean(x**2), kept

    return _case(devices, loss, lambda: [jnp.zeros((2048, 2048))] * 4, ((8192, 2048), jnp.float32), fewer)


@advised(*TARGETS, **FEWER)
def returned_attention(devices: list[Any], fewer: bool = False) -> Case:
    """Attention that returns its weights."""
    heads, width = 16, 1024

    def loss(params: Tree, x: Any) -> Any:
        batch, length, _ = x.shape
        q, k, v = ((x @ params[n]).reshape(batch, length, heads, -1) for n in "qkv")
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8, -1)
        y = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ params["o"]
        return jnp.mean((x + y) ** 2), weights

    return _case(
        devices, loss, lambda: {n: jnp.zeros((width, width)) for n in "qkvo"}, ((16, 512, width), jnp.float32), fewer
    )


@advised(*TARGETS, **FEWER)
def returned_logits(devices: list[Any], fewer: bool = False) -> Case:
    """A transformer that returns its logits beside the loss."""
    width, vocab = 512, 16384

    def initial() -> Tree:
        square = {name: jnp.zeros((width, width)) for name in "qkvo"}
        mlp = {"up": jnp.zeros((width, 4 * width)), "down": jnp.zeros((4 * width, width))}
        one = square | mlp | {"norm": jnp.ones(width), "norm2": jnp.ones(width)}
        return {"embed": jnp.zeros((vocab, width)), "block": one, "head": jnp.zeros((width, vocab))}

    def loss(params: Tree, tokens: Any) -> Any:
        x = block(params["block"], params["embed"][tokens], 8)
        logits = x @ params["head"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens).mean(), logits

    return _case(devices, loss, initial, ((16, 256), jnp.int32), fewer)


@advised(*TARGETS, **FEWER)
def returned_features(devices: list[Any], fewer: bool = False) -> Case:
    """Convolutions that return the features of each stage."""

    def loss(params: Tree, x: Any) -> Any:
        kept = []
        for w in params:
            x = jax.nn.relu(
                jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            )
            kept.append(x)
        return jnp.mean(x**2), kept

    return _case(devices, loss, lambda: [jnp.zeros((3, 3, 128, 128))] * 4, ((64, 32, 32, 128), jnp.float32), fewer)


@advised(*TARGETS, **FEWER)
def returned_states(devices: list[Any], fewer: bool = False) -> Case:
    """A recurrence that returns its state at each time."""

    def loss(params: Tree, x: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            h = jnp.tanh(x @ params["input"] + h @ params["hidden"])
            return h, h

        last, states = jax.lax.scan(cell, jnp.zeros_like(x[:, 0]), x.swapaxes(0, 1))
        return jnp.mean(last**2), states

    return _case(
        devices, loss, lambda: {n: jnp.zeros((1024, 1024)) for n in ("input", "hidden")}, ((256, 128, 1024),
        jnp.float32), fewer,
    )  # fmt: skip


@advised(*TARGETS, **FEWER)
def returned_hidden_x4(devices: list[Any], fewer: bool = False) -> Case:
    """A perceptron over four devices that returns what each layer computes."""

    def loss(params: Tree, x: Any) -> Any:
        kept = []
        for w in params:
            x = jnp.tanh(x @ w)
            kept.append(x)
        return jnp.mean(x**2), kept

    return _case(devices, loss, lambda: [jnp.zeros((2048, 2048))] * 4, ((32768, 2048), jnp.float32), fewer, 4)


UNCHANGED = {"Unchanged arguments": {"fewer": True}}


@advised(*TARGETS, **UNCHANGED)
def returned_frozen(devices: list[Any], fewer: bool = False) -> Case:
    """A step that updates a head and returns the frozen base with it."""

    def step(state: Tree, x: Any) -> Any:
        def loss(head: Any) -> Any:
            y = x
            for w in state["base"]:
                y = jax.nn.relu(y @ w)
            return jnp.mean((y @ head) ** 2)

        grad = jax.grad(loss)(state["head"])
        new = {"head": state["head"] - 0.1 * grad}
        return new if fewer else new | {"base": jax.lax.optimization_barrier(state["base"])}

    def initial() -> Tree:
        return {"base": [jnp.zeros((2048, 2048))] * 6, "head": jnp.zeros((2048, 256))}

    one, data = replicated(devices[:1]), split_batch(devices[:1])
    return Case(
        jax.jit(step), (shapes(initial, one), data((2048, 2048), jnp.float32)),
        ({"base": "parameter", "head": "parameter"}, "input"),
    )  # fmt: skip


@advised(*TARGETS, **UNCHANGED)
def returned_table(devices: list[Any], fewer: bool = False) -> Case:
    """A look-up that returns the table, sharded otherwise by out_shardings."""

    def look_up(table: Any, ids: Any) -> Any:
        found = table[ids].sum(1)
        return found if fewer else (found, jax.lax.optimization_barrier(table))

    one = replicated(devices[:1])
    return Case(
        jax.jit(look_up),
        (shapes(lambda: jnp.zeros((200_000, 256)), one), shapes(lambda: jnp.zeros((256, 16), jnp.int32), one)),
        ("parameter", "input"),
    )


@advised(*TARGETS, **UNCHANGED)
def returned_through_loop(devices: list[Any], fewer: bool = False) -> Case:
    """A loop that carries weights and returns them."""

    def solve(params: Tree, x: Any) -> Any:
        def body(i: Any, carry: Any) -> Any:
            x, params = carry
            for w in params:
                x = jnp.tanh(x @ w)
            return x, params

        x, params = jax.lax.fori_loop(0, 5, body, (x, params))
        return x if fewer else (x, params)

    one, data = replicated(devices[:1]), split_batch(devices[:1])
    return Case(
        jax.jit(solve), (shapes(lambda: [jnp.zeros((2048, 2048))] * 4, one), data((1024, 2048), jnp.float32)),
        ("parameter", "input"),
    )  # fmt: skip
