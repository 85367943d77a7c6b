"""Models in Flax linen, trained with a `TrainState`."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState
from programs.case import Case, Tree, program
from programs.sharding import replicated, shapes, split_batch
from programs.training import jit_step, mean_gradients
from programs.transformer import cross_entropy


class Block(nn.Module):
    """A layer of a transformer, before normalization."""

    heads: int
    hidden: int
    dtype: Any
    causal: bool = True

    @nn.compact
    def __call__(self, x: Any) -> Any:
        mask = nn.make_causal_mask(x[..., 0]) if self.causal else None
        h = nn.LayerNorm(dtype=self.dtype)(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=self.dtype)(h, mask=mask)
        h = nn.Dense(self.hidden, dtype=self.dtype)(nn.LayerNorm(dtype=self.dtype)(x))
        return x + nn.Dense(x.shape[-1], dtype=self.dtype)(nn.gelu(h))


class LanguageModel(nn.Module):
    """A language model with learned positions and logits in f32."""

    remat: str
    dtype: Any
    vocabulary: int = 32000
    width: int = 768
    layers: int = 2

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        layer = Block if self.remat == "none" else nn.remat(Block)
        embed = nn.Embed(self.vocabulary, self.width, dtype=self.dtype)
        positions = self.param("positions", nn.initializers.normal(), (tokens.shape[1], self.width))
        x = embed(tokens) + positions.astype(self.dtype)
        for _ in range(self.layers):
            x = layer(12, 4 * self.width, self.dtype)(x)
        return nn.Dense(self.vocabulary, dtype=self.dtype)(nn.LayerNorm(dtype=self.dtype)(x)).astype(jnp.float32)


class VisionTransformer(nn.Module):
    """A vision transformer on patches of 16 by 16 pixels."""

    remat: str
    dtype: Any
    width: int = 1024
    layers: int = 3

    @nn.compact
    def __call__(self, images: Any) -> Any:
        layer = Block if self.remat == "none" else nn.remat(Block)
        x = nn.Conv(self.width, (16, 16), strides=(16, 16), dtype=self.dtype)(images)
        x = x.reshape(x.shape[0], -1, self.width)
        x = x + self.param("positions", nn.initializers.normal(), (x.shape[1], self.width)).astype(self.dtype)
        for _ in range(self.layers):
            x = layer(16, 4 * self.width, self.dtype, causal=False)(x)
        return nn.Dense(1000, dtype=self.dtype)(nn.LayerNorm(dtype=self.dtype)(x).mean(axis=1))


def _case(
    model: nn.Module, optimizer: optax.GradientTransformation, loss: Any, batch: Tree, one: Any,
    donate: bool, microbatches: int,
) -> Case:  # fmt: skip
    """Return the training step of a model; the loss is of parameters and a batch (inputs, labels)."""

    def initial() -> Any:
        params = model.init(jax.random.key(0), jnp.zeros(batch[0].shape, batch[0].dtype))
        return TrainState.create(apply_fn=model.apply, params=params["params"], tx=optimizer)

    def train_step(state: Any, batch: Tree) -> Any:
        value, grads = mean_gradients(loss, state.params, batch, microbatches)
        return state.apply_gradients(grads=grads), value

    state = shapes(initial, one)
    roles = state.replace(step="state", params="parameter", opt_state="optimizer state")
    return Case(jit_step(train_step, donate), (state, batch), (roles, "input"))


@program(
    "v5e", "h100",
    donation={"donate": True}, microbatching={"microbatches": 2}, rematerialization={"remat": "layer"},
    Store_the_first_moments={"mu_dtype": "bfloat16"},
)  # fmt: skip
def linen_lm(
    devices: list[Any], donate: bool = False, microbatches: int = 1, remat: str = "none",
    compute: str = "float32", mu_dtype: str | None = None, batch: int = 8,
) -> Case:  # fmt: skip
    """A language model of two layers with AdamW and clipped gradients."""
    model = LanguageModel(remat, compute)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, mu_dtype=mu_dtype))

    def loss(params: Tree, batch: Tree) -> Any:
        return cross_entropy(model.apply({"params": params}, batch[0]), batch[1])

    tokens = split_batch(devices[:1])((batch, 1024), jnp.int32)
    return _case(model, optimizer, loss, (tokens, tokens), replicated(devices[:1]), donate, microbatches)


@program(
    "v5e",
    donation={"donate": True}, microbatching={"microbatches": 2}, rematerialization={"remat": "layer"},
    Compute_in_bf16={"compute": "bfloat16"},
)  # fmt: skip
def vit_linen(
    devices: list[Any], donate: bool = True, microbatches: int = 1, remat: str = "none",
    compute: str = "float32", batch: int = 128,
) -> Case:  # fmt: skip
    """A vision transformer with SGD and momentum, data-parallel."""
    model = VisionTransformer(remat, compute)

    def loss(params: Tree, batch: Tree) -> Any:
        return cross_entropy(model.apply({"params": params}, batch[0]), batch[1])

    data = split_batch(devices)
    images, labels = data((batch, 224, 224, 3)), data((batch,), jnp.int32)
    optimizer = optax.sgd(0.1, momentum=0.9)
    return _case(model, optimizer, loss, (images, labels), replicated(devices), donate, microbatches)
