"""Transformers in Flax linen, Flax NNX and Equinox."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax import nnx
from programs.activations.step import Changes, checkpointed, training_case, training_step
from programs.case import Case, Tree

WIDTH, VOCABULARY = 768, 8192


def _cross_entropy(logits: Any, tokens: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1].astype(jnp.float32), tokens[:, 1:]).mean()


class LinenBlock(nn.Module):
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, x: Any) -> Any:
        h = nn.LayerNorm(dtype=self.dtype)(x)
        x = x + nn.MultiHeadDotProductAttention(12, dtype=self.dtype)(h, mask=nn.make_causal_mask(x[..., 0]))
        h = nn.LayerNorm(dtype=self.dtype)(x)
        h = nn.gelu(nn.Dense(4 * x.shape[-1], dtype=self.dtype)(h))
        return x + nn.Dense(x.shape[-1], dtype=self.dtype)(h)


class LinenModel(nn.Module):
    layers: int
    remat: str
    scanned: bool
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        embed = nn.Embed(VOCABULARY, WIDTH, dtype=self.dtype)
        x = embed(tokens)
        layer = checkpointed(LinenBlock, self.remat, nn.remat)
        if self.scanned:
            stack = nn.scan(
                lambda module, x, _: (module(x), None),
                variable_axes={"params": 0},
                split_rngs={"params": True},
                length=self.layers,
            )
            x, _ = stack(layer(self.dtype), x, None)  # type: ignore[no-untyped-call]
        else:
            for _ in range(self.layers):
                x = layer(self.dtype)(x)
        return embed.attend(nn.LayerNorm(dtype=self.dtype)(x))


def _linen_case(devices: list[Any], model: LinenModel, batch: int, time: int, changes: Changes) -> Case:
    def loss(params: Tree, batch: Tree) -> Any:
        return _cross_entropy(model.apply(params, batch["tokens"]), batch["tokens"])

    return training_case(
        devices,
        lambda: model.init(jax.random.key(0), jnp.zeros((1, time), jnp.int32)),
        loss,
        {"tokens": ((batch, time), jnp.int32)},
        changes,
    )


@training_step("v5e", "v6e", "h100")
def linen_decoder(
    devices: list[Any], batch: int = 32, time: int = 512, layers: int = 4, remat: str = "", **changes: Any
) -> Case:
    """A linen transformer with its layers in a Python loop."""
    return _linen_case(devices, LinenModel(layers, remat, False), batch, time, Changes(**changes))


@training_step("v5e", "h100")
def linen_scanned_decoder(
    devices: list[Any], batch: int = 32, time: int = 512, layers: int = 4, remat: str = "", **changes: Any
) -> Case:
    """A linen transformer with its layers in nn.scan."""
    return _linen_case(devices, LinenModel(layers, remat, True), batch, time, Changes(**changes))


class NnxBlock(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm_1, self.norm_2 = (nnx.LayerNorm(WIDTH, dtype=jnp.bfloat16, rngs=rngs) for _ in range(2))
        self.attention = nnx.MultiHeadAttention(12, WIDTH, dtype=jnp.bfloat16, decode=False, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, dtype=jnp.bfloat16, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, dtype=jnp.bfloat16, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = x + self.attention(self.norm_1(x), mask=nnx.make_causal_mask(x[..., 0]))
        return x + self.down(nnx.gelu(self.up(self.norm_2(x))))


class NnxModel(nnx.Module):
    def __init__(self, layers: int, remat: str, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(VOCABULARY, WIDTH, dtype=jnp.bfloat16, rngs=rngs)
        self.blocks = nnx.List([NnxBlock(rngs) for _ in range(layers)])
        self.head = nnx.Linear(WIDTH, VOCABULARY, dtype=jnp.bfloat16, rngs=rngs)
        self.remat = remat

    def __call__(self, tokens: Any) -> Any:
        x = self.embed(tokens)
        call = checkpointed(lambda layer, x: layer(x), self.remat, nnx.remat)
        for layer in self.blocks:
            x = call(layer, x)
        return self.head(x)


@training_step("v5e", "v5p", "h100")
def nnx_decoder(
    devices: list[Any], batch: int = 32, time: int = 512, layers: int = 4, remat: str = "", **changes: Any
) -> Case:
    """An NNX transformer with its layers in a Python loop."""
    graph, _ = nnx.split(nnx.eval_shape(lambda: NnxModel(layers, remat, nnx.Rngs(0))))

    def loss(params: Tree, batch: Tree) -> Any:
        return _cross_entropy(nnx.merge(graph, params)(batch["tokens"]), batch["tokens"])

    return training_case(
        devices,
        lambda: nnx.to_pure_dict(nnx.state(NnxModel(layers, remat, nnx.Rngs(0)))),
        loss,
        {"tokens": ((batch, time), jnp.int32)},
        Changes(**changes),
        optax.adam(1e-3),
    )


@training_step("v5e", "v6e", "h100")
def equinox_mixer(devices: list[Any], batch: int = 256, layers: int = 4, remat: str = "", **changes: Any) -> Case:
    """An MLP mixer in Equinox, f32, mapped over its examples with vmap."""
    import equinox as eqx

    patches, width = 196, 384

    class Block(eqx.Module):  # type: ignore[misc]
        tokens: eqx.nn.MLP
        channels: eqx.nn.MLP
        norm: eqx.nn.LayerNorm

        def __init__(self, key: Any) -> None:
            self.tokens = eqx.nn.MLP(patches, patches, 256, 1, key=key)
            self.channels = eqx.nn.MLP(width, width, 4 * width, 1, key=key)
            self.norm = eqx.nn.LayerNorm(width)

        def __call__(self, x: Any) -> Any:
            h = jax.vmap(self.norm)(x)
            x = x + jax.vmap(self.tokens, 1, 1)(h)
            return x + jax.vmap(self.channels)(x)

    class Mixer(eqx.Module):  # type: ignore[misc]
        blocks: list[Block]
        head: eqx.nn.Linear

        def __call__(self, x: Any) -> Any:
            for layer in self.blocks:
                x = checkpointed(layer, remat, eqx.filter_checkpoint)(x)
            return self.head(x.mean(0))

    def create() -> Any:
        keys = jax.random.split(jax.random.key(0), layers + 1)
        return Mixer([Block(key) for key in keys[1:]], eqx.nn.Linear(width, 1000, key=keys[0]))

    static = eqx.filter(eqx.filter_eval_shape(create), lambda a: not isinstance(a, jax.ShapeDtypeStruct))

    def loss(params: Tree, batch: Tree) -> Any:
        logits = jax.vmap(eqx.combine(params, static))(batch["x"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()

    return training_case(
        devices,
        lambda: eqx.filter(create(), eqx.is_array),
        loss,
        {"x": ((batch, patches, width), jnp.float32), "y": ((batch,), jnp.int32)},
        Changes(**changes),
    )
