"""Convolutional networks in Flax linen: classification with batch norm, segmentation, diffusion."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, program
from programs.sharding import replicated, shapes, split_batch
from programs.training import TRAINED, jit_step, mean_gradients, training_state, training_step
from programs.transformer import cross_entropy


class Residual(nn.Module):
    """A bottleneck block with batch norm."""

    features: int
    strides: int
    dtype: Any

    @nn.compact
    def __call__(self, x: Any) -> Any:
        def norm(y: Any) -> Any:
            return nn.BatchNorm(use_running_average=False, dtype=self.dtype)(y)

        size = (self.strides, self.strides)
        y = nn.relu(norm(nn.Conv(self.features, (1, 1), use_bias=False, dtype=self.dtype)(x)))
        y = nn.relu(norm(nn.Conv(self.features, (3, 3), size, use_bias=False, dtype=self.dtype)(y)))
        y = norm(nn.Conv(4 * self.features, (1, 1), use_bias=False, dtype=self.dtype)(y))
        if x.shape != y.shape:
            x = norm(nn.Conv(4 * self.features, (1, 1), size, use_bias=False, dtype=self.dtype)(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    """A residual network of one block for each of four resolutions."""

    remat: str
    dtype: Any

    @nn.compact
    def __call__(self, x: Any) -> Any:
        block = Residual if self.remat == "none" else nn.remat(Residual)
        x = nn.Conv(64, (7, 7), (2, 2), use_bias=False, dtype=self.dtype)(x)
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for i in range(4):
            x = block(64 * 2**i, 1 if i == 0 else 2, self.dtype)(x)
        return nn.Dense(1000, dtype=self.dtype)(x.mean(axis=(1, 2)))


class UNet(nn.Module):
    """An encoder and a decoder with skip connections, conditioned on a time where there is one."""

    channels: int
    outputs: int
    dtype: Any
    depth: int = 3

    @nn.compact
    def __call__(self, x: Any, time: Any = None) -> Any:
        def double(features: int, y: Any) -> Any:
            y = nn.silu(nn.GroupNorm(8, dtype=self.dtype)(nn.Conv(features, (3, 3), dtype=self.dtype)(y)))
            if time is not None:
                y = y + nn.Dense(features, dtype=self.dtype)(time)[:, None, None]
            return nn.silu(nn.GroupNorm(8, dtype=self.dtype)(nn.Conv(features, (3, 3), dtype=self.dtype)(y)))

        skips = []
        for i in range(self.depth):
            x = double(self.channels * 2**i, x)
            skips.append(x)
            x = nn.avg_pool(x, (2, 2), (2, 2))
        x = double(self.channels * 2**self.depth, x)
        for i in reversed(range(self.depth)):
            x = nn.ConvTranspose(self.channels * 2**i, (2, 2), (2, 2), dtype=self.dtype)(x)
            x = double(self.channels * 2**i, jnp.concatenate([x, skips[i]], axis=-1))
        return nn.Conv(self.outputs, (1, 1), dtype=self.dtype)(x)


@program(
    "v4", "v6e", "h100",
    donation={"donate": True}, microbatching={"microbatches": 2}, rematerialization={"remat": "layer"},
    Compute_in_bf16={"compute": "bfloat16"},
)  # fmt: skip
def resnet(
    devices: list[Any], donate: bool = False, microbatches: int = 1, remat: str = "none", compute: str = "float32",
    batch: int = 128,
) -> Case:  # fmt: skip
    """A residual network with SGD; the averages of batch norm are state."""
    model, optimizer = ResNet(remat, compute), optax.sgd(0.1, momentum=0.9, nesterov=True)

    def initial() -> Tree:
        variables = model.init(jax.random.key(0), jnp.zeros((2, 224, 224, 3)))
        return training_state(variables["params"], optimizer) | {"batch_stats": variables["batch_stats"]}

    def train_step(state: Tree, images: Any, labels: Any) -> Any:
        def loss(params: Tree, batch: Tree) -> Any:
            variables = {"params": params, "batch_stats": state["batch_stats"]}
            scores, changed = model.apply(variables, batch[0], mutable=["batch_stats"])
            return cross_entropy(scores, batch[1]), changed["batch_stats"]

        (value, stats), grads = mean_gradients(loss, state["params"], (images, labels), microbatches, has_aux=True)
        updates, opt = optimizer.update(grads, state["opt"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt, "batch_stats": stats}, value

    data = split_batch(devices)
    return Case(
        jit_step(train_step, donate),
        (shapes(initial, replicated(devices)), data((batch, 224, 224, 3)), data((batch,), jnp.int32)),
        (TRAINED | {"batch_stats": "state"}, "input", "input"),
    )


@program("v5e", donation={"donate": True}, microbatching={"microbatches": 2}, Compute_in_bf16={"compute": "bfloat16"})
def unet(
    devices: list[Any], donate: bool = False, microbatches: int = 1, compute: str = "float32", batch: int = 8
) -> Case:
    """Segmentation of images with a UNet, whose skip connections live until the decoder."""
    model, optimizer = UNet(64, 21, compute), optax.adam(1e-3)

    def initial() -> Tree:
        return training_state(model.init(jax.random.key(0), jnp.zeros((1, 256, 256, 3)))["params"], optimizer)

    def loss(params: Tree, batch: Tree) -> Any:
        return cross_entropy(model.apply({"params": params}, batch["image"]), batch["mask"])

    data = split_batch(devices[:1])
    arguments = {"image": data((batch, 256, 256, 3)), "mask": data((batch, 256, 256), jnp.int32)}
    return Case(
        jit_step(training_step(loss, optimizer, microbatches), donate),
        (shapes(initial, replicated(devices[:1])), arguments),
        (TRAINED, "input"),
    )


@program("v6e", donation={"donate": True}, Compute_in_bf16={"compute": "bfloat16"})
def diffusion(devices: list[Any], donate: bool = False, compute: str = "float32", batch: int = 64) -> Case:
    """A denoising step with an average of the weights (EMA), which is state; the random key is an input."""
    model, optimizer = UNet(96, 3, compute, depth=2), optax.adamw(1e-4)

    def initial() -> Tree:
        params = model.init(jax.random.key(0), jnp.zeros((1, 64, 64, 3)), jnp.zeros((1, 128)))["params"]
        return training_state(params, optimizer) | {"ema": params}

    def train_step(state: Tree, images: Any, key: Any) -> Any:
        keys = jax.random.split(jax.random.wrap_key_data(key))
        time = jax.random.uniform(keys[0], (batch, 1))
        noise = jax.random.normal(keys[1], images.shape)
        level = time[:, :, None, None]
        noisy = jnp.sqrt(1 - level) * images + jnp.sqrt(level) * noise
        features = jnp.concatenate([jnp.sin(time * jnp.arange(64)), jnp.cos(time * jnp.arange(64))], axis=-1)

        def loss(params: Tree) -> Any:
            predicted: Any = model.apply({"params": params}, noisy, features)
            return jnp.mean((predicted - noise) ** 2)

        value, grads = jax.value_and_grad(loss)(state["params"])
        updates, opt = optimizer.update(grads, state["opt"], state["params"])
        params = optax.apply_updates(state["params"], updates)
        ema = jax.tree.map(lambda old, new: 0.999 * old + 0.001 * new, state["ema"], params)
        return {"params": params, "opt": opt, "ema": ema}, value

    one = replicated(devices[:1])
    return Case(
        jit_step(train_step, donate),
        (
            shapes(initial, one),
            split_batch(devices[:1])((batch, 64, 64, 3)),
            shapes(lambda: jnp.zeros(2, jnp.uint32), one),
        ),
        (TRAINED | {"ema": "state"}, "input", "input"),
    )
