"""A training step of ResNet: how many images fit on each device?

    tb-memplugin fit examples/resnet.py:step --on v5e:2x2 --on h100:8 --vary batch=64:8192:64

`step` describes the step without running it: it returns a jitted function and the shapes of its arguments, with
shardings on `devices`. The batch is split over all devices; each has all of the weights. Statistics of the batch are
those of all devices together.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

STAGES = {26: (2, 2, 2, 2), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}  # residual blocks at each resolution, by depth


def step(
    devices: list[Any],
    batch: int = 256,  # images per step, on all devices together
    size: int = 224,  # pixels along each edge
    depth: int = 50,  # 26, 50 or 101
    remat: bool = False,  # compute the inside of each residual block again in the backward pass
    classes: int = 1000,
) -> tuple[Any, tuple[Any, ...]]:
    """Return a jitted training step with momentum, and the shapes of its arguments."""
    mesh = Mesh(np.array(devices), ("data",))
    everywhere, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    weights = jax.tree.map(
        lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=everywhere),
        network(depth, classes),
        is_leaf=lambda node: isinstance(node, tuple),
    )
    images = jax.ShapeDtypeStruct((batch, size, size, 3), jnp.bfloat16, sharding=split)
    labels = jax.ShapeDtypeStruct((batch,), jnp.int32, sharding=split)
    residual = jax.checkpoint(block, static_argnums=2) if remat else block

    def loss(weights: Any, images: Any, labels: Any) -> Any:
        x = convolve(images, weights["stem"], stride=2)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for number, blocks in enumerate(weights["stages"]):
            with jax.named_scope(f"stage_{number}"):
                for place, one in enumerate(blocks):
                    x = residual(x, one, 2 if number > 0 and place == 0 else 1)
        logits = x.mean((1, 2)).astype(jnp.float32) @ weights["head"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], -1).mean()

    def train(weights: Any, momentum: Any, images: Any, labels: Any) -> tuple[Any, Any, Any]:
        value, gradient = jax.value_and_grad(loss)(weights, images, labels)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
        return jax.tree.map(lambda w, m: w - 0.1 * m, weights, momentum), momentum, value

    return jax.jit(train, donate_argnums=(0, 1)), (weights, weights, images, labels)


def network(depth: int, classes: int) -> dict[str, Any]:
    """Return the shapes of all weights: height, width, and channels in and out of each convolution."""
    stages, channels = [], 64
    for number, count in enumerate(STAGES[depth]):
        width, blocks = 64 * 2**number, []
        for _ in range(count):
            shapes = {
                "narrow": convolution(1, channels, width),
                "middle": convolution(3, width, width),
                "widen": convolution(1, width, 4 * width),
            }
            if channels != 4 * width:
                shapes["shortcut"] = convolution(1, channels, 4 * width)
            blocks.append(shapes)
            channels = 4 * width
        stages.append(blocks)
    return {"stem": convolution(7, 3, 64), "stages": stages, "head": (channels, classes)}


def convolution(edge: int, channels: int, filters: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a convolution and of the normalization after it."""
    return {"kernel": (edge, edge, channels, filters), "scale": (filters,), "bias": (filters,)}


def block(x: Any, weights: Any, stride: int) -> Any:
    """Apply a residual block."""
    inner = convolve(x, weights["narrow"])
    inner = convolve(inner, weights["middle"], stride)
    inner = convolve(inner, weights["widen"], activate=False)
    shortcut = convolve(x, weights["shortcut"], stride, activate=False) if "shortcut" in weights else x
    return jax.nn.relu(inner + shortcut)


def convolve(x: Any, weights: Any, stride: int = 1, activate: bool = True) -> Any:
    """Apply a convolution, normalize over the batch, and activate."""
    y = jax.lax.conv_general_dilated(
        x, weights["kernel"].astype(x.dtype), (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    mean = y.astype(jnp.float32).mean((0, 1, 2))
    variance = jnp.square(y.astype(jnp.float32)).mean((0, 1, 2)) - jnp.square(mean)
    scale = weights["scale"] * jax.lax.rsqrt(variance + 1e-5)
    y = (y * scale + (weights["bias"] - mean * scale)).astype(x.dtype)
    return jax.nn.relu(y) if activate else y
