"""Convolutions, recurrences, adapters, mixtures of experts and other training steps."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax.sharding import PartitionSpec
from programs.activations import transformers
from programs.activations.step import Changes, checkpointed, gradients, training_case, training_step
from programs.case import Case, Tree


class ResidualBlock(nn.Module):
    channels: int
    stride: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        y = nn.relu(nn.GroupNorm(8)(nn.Conv(self.channels, (3, 3), self.stride, dtype=x.dtype)(x)))
        y = nn.GroupNorm(8)(nn.Conv(self.channels, (3, 3), dtype=x.dtype)(y))
        if x.shape != y.shape:
            x = nn.Conv(self.channels, (1, 1), self.stride, dtype=x.dtype)(x)
        return nn.relu(x + y).astype(x.dtype)


class ResidualNetwork(nn.Module):
    remat: str

    @nn.compact
    def __call__(self, x: Any) -> Any:
        block = checkpointed(ResidualBlock, self.remat, nn.remat)
        x = nn.Conv(64, (7, 7), 2, dtype=x.dtype)(x)
        for stage in range(4):
            for i in range(2):
                x = block(64 * 2**stage, 2 if stage and not i else 1)(x)
        return nn.Dense(1000)(x.mean((1, 2)))


@training_step("v5e", "v6e", "h100")
def residual_network(devices: list[Any], batch: int = 64, remat: str = "", **changes: Any) -> Case:
    """Convolutions with group normalization, SGD with momentum."""
    model = ResidualNetwork(remat)

    def loss(params: Tree, batch: Tree) -> Any:
        logits = model.apply(params, batch["image"].astype(jnp.bfloat16))
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    return training_case(
        devices,
        lambda: model.init(jax.random.key(0), jnp.zeros((1, 224, 224, 3), jnp.bfloat16)),
        loss,
        {"image": ((batch, 224, 224, 3), jnp.float32), "label": ((batch,), jnp.int32)},
        Changes(**changes),
        optax.sgd(0.1, momentum=0.9),
    )


class Halves(nn.Module):
    remat: str

    @nn.compact
    def __call__(self, x: Any) -> Any:
        class Double(nn.Module):
            channels: int

            @nn.compact
            def __call__(self, x: Any) -> Any:
                for _ in range(2):
                    x = nn.silu(nn.GroupNorm(8)(nn.Conv(self.channels, (3, 3))(x)))
                return x

        double = checkpointed(Double, self.remat, nn.remat)
        kept = []
        for channels in (64, 128, 256):
            x = double(channels)(x)
            kept.append(x)
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = double(512)(x)
        for channels in (256, 128, 64):
            x = nn.ConvTranspose(channels, (2, 2), (2, 2))(x)
            x = double(channels)(jnp.concatenate([x, kept.pop()], -1))
        return nn.Conv(3, (1, 1))(x)


@training_step("v5e", "v5p", "h100")
def image_to_image(devices: list[Any], batch: int = 8, remat: str = "", **changes: Any) -> Case:
    """A U-shaped network, f32: activations of each resolution are kept for its way back."""
    model = Halves(remat)
    return training_case(
        devices,
        lambda: model.init(jax.random.key(0), jnp.zeros((1, 128, 128, 3))),
        lambda params, batch: jnp.mean((model.apply(params, batch["x"]) - batch["y"]) ** 2),
        {"x": ((batch, 128, 128, 3), jnp.float32), "y": ((batch, 128, 128, 3), jnp.float32)},
        Changes(**changes),
    )


@training_step("v5e", "v6e", "h100")
def recurrent(
    devices: list[Any], batch: int = 128, time: int = 256, width: int = 512, remat: str = "", **changes: Any
) -> Case:
    """Two LSTM layers, each a scan over time."""

    def initial() -> Tree:
        layer = {"x": jnp.zeros((width, 4 * width)), "h": jnp.zeros((width, 4 * width)), "b": jnp.zeros(4 * width)}
        return {"embedding": jnp.zeros((8192, width)), "layers": [layer, layer]}

    def loss(params: Tree, batch: Tree) -> Any:
        x = params["embedding"][batch["tokens"]].swapaxes(0, 1)
        for layer in params["layers"]:

            def cell(carry: Any, x: Any, layer: Tree = layer) -> Any:
                h, c = carry
                i, f, g, o = jnp.split(x @ layer["x"] + h @ layer["h"] + layer["b"], 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            zero = jnp.zeros((x.shape[1], width))
            _, x = jax.lax.scan(checkpointed(cell, remat), (zero, zero), x)
        return transformers.cross_entropy(x.swapaxes(0, 1), params["embedding"], batch["tokens"])

    return training_case(
        devices, initial, loss, {"tokens": ((batch, time), jnp.int32)}, Changes(**changes), optax.adam(1e-3)
    )


@training_step("v5e", "h100")
def expert_layers(
    devices: list[Any], batch: int = 16, time: int = 512, layers: int = 4, remat: str = "", **changes: Any
) -> Case:
    """Transformer layers with eight experts, each token to the capacity of its expert."""
    width, count = 512, 8

    def initial() -> Tree:
        layer = {
            "router": jnp.zeros((width, count)),
            "up": jnp.zeros((count, width, 4 * width)),
            "down": jnp.zeros((count, 4 * width, width)),
        }
        attention = [transformers.block_parameters(width) for _ in range(layers)]
        return {"embedding": jnp.zeros((8192, width)), "experts": [layer] * layers, "attention": attention}

    def layer(x: Any, params: Tree, attention: Tree) -> Any:
        x = x + transformers.attention(transformers.norm(x, attention["norm_1"]), attention)
        rows = x.reshape(-1, width)
        capacity = 2 * len(rows) // count
        gate = jax.nn.softmax(rows @ params["router"].astype(x.dtype))
        expert = jnp.argmax(gate, -1)
        place = jnp.cumsum(jax.nn.one_hot(expert, count, dtype=jnp.int32), 0)[jnp.arange(len(rows)), expert] - 1
        sent = jnp.zeros((count, capacity, width), x.dtype).at[expert, place].set(rows, mode="drop")
        hidden = jax.nn.gelu(jnp.einsum("ecw,ewh->ech", sent, params["up"].astype(x.dtype)))
        back = jnp.einsum("ech,ehw->ecw", hidden, params["down"].astype(x.dtype))
        out = back.at[expert, place].get(mode="fill", fill_value=0) * jnp.max(gate, -1, keepdims=True)
        return x + out.reshape(x.shape)

    def loss(params: Tree, batch: Tree) -> Any:
        x = params["embedding"].astype(jnp.bfloat16)[batch["tokens"]]
        for own, attention in zip(params["experts"], params["attention"], strict=True):
            x = checkpointed(layer, remat)(x, own, attention)
        return transformers.cross_entropy(x, params["embedding"], batch["tokens"])

    return training_case(devices, initial, loss, {"tokens": ((batch, time), jnp.int32)}, Changes(**changes))


@training_step("v5e", "v6e", "h100")
def tensor_parallel(
    devices: list[Any], batch: int = 16, time: int = 512, layers: int = 4, remat: str = "", **changes: Any
) -> Case:
    """A transformer whose weights are split over four devices, with the batch on all of them."""
    columns = {"qkv", "up"}

    def spec(path: Any, leaf: Any) -> Any:
        name = str(getattr(path[-1], "key", ""))
        if leaf.ndim < 2:
            return PartitionSpec()
        return PartitionSpec(None, "data") if name in columns else PartitionSpec("data", None)

    case = training_case(
        devices,
        lambda: transformers.unrolled_parameters(layers),
        transformers.unrolled_loss(remat),
        {"tokens": ((batch, time), jnp.int32)},
        Changes(**changes),
        count=4,
        sharding=spec,
    )
    state, given = case.arguments
    whole = jax.tree.map(
        lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding.update(spec=PartitionSpec())), given
    )
    return Case(case.function, (state, whole), case.roles)


@training_step("v5e", "v5p", "h100")
def autoencoder(devices: list[Any], batch: int = 16384, remat: str = "", **changes: Any) -> Case:
    """A deep multilayer perceptron, each layer under its own name scope, with SGD."""
    widths = [784, 2048, 1024, 512, 256, 512, 1024, 2048, 784]

    def initial() -> Tree:
        return [jnp.zeros(pair) for pair in itertools.pairwise(widths)]

    def loss(params: Tree, batch: Tree) -> Any:
        x = batch["x"]
        for i, w in enumerate(params):
            with jax.named_scope(f"layer_{i}"):
                x = checkpointed(lambda x, w: jax.nn.gelu(x @ w), remat)(x, w)
        return jnp.mean((x - batch["x"]) ** 2)

    return training_case(devices, initial, loss, {"x": ((batch, 784), jnp.float32)}, Changes(**changes), optax.sgd(0.1))


@training_step("v5e", "h100")
def adapters(
    devices: list[Any], batch: int = 16, time: int = 512, layers: int = 4, remat: str = "", **changes: Any
) -> Case:
    """Low-rank adapters on a frozen transformer; the frozen weights are a part of the batch's tree."""
    rank, width = 16, transformers.WIDTH

    def initial() -> Tree:
        return [{"a": jnp.zeros((width, rank)), "b": jnp.zeros((rank, 3 * width))} for _ in range(layers)]

    frozen = jax.eval_shape(lambda: transformers.unrolled_parameters(layers, jnp.bfloat16))

    def loss(params: Tree, batch: Tree) -> Any:
        base = batch["base"]
        x = base["embedding"][batch["tokens"]]
        for layer, own in zip(base["blocks"], params, strict=True):

            def apply(x: Any, layer: Tree, own: Tree) -> Any:
                merged = {**layer, "qkv": layer["qkv"] + (own["a"] @ own["b"]).astype(x.dtype)}
                return transformers.block(x, merged)

            x = checkpointed(apply, remat)(x, layer, own)
        return transformers.cross_entropy(x, base["embedding"], batch["tokens"])

    asked = Changes(**changes)
    case = training_case(
        devices, initial, lambda p, b: 0.0, {"tokens": ((batch, time), jnp.int32)}, asked._replace(microbatches=1)
    )
    state, given = case.arguments
    base = jax.tree.map(
        lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=state["params"][0]["a"].sharding), frozen
    )

    optimizer = optax.adamw(1e-3)

    def step(state: Tree, base: Tree, batch: Tree) -> Any:
        value, grads = gradients(lambda p, b: loss(p, {**b, "base": base}), state["params"], batch, asked.microbatches)
        updates, opt = optimizer.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value

    return Case(
        jax.jit(step, donate_argnums=(0,) if asked.donate else ()),
        (state, base, given),
        ({"params": "parameter", "opt": "optimizer state"}, "parameter", "input"),
    )
