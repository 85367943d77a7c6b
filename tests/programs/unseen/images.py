"""Convolutional networks: residual, adversarial, denoising, over sound."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, advised
from programs.training import rematerialized
from programs.unseen.step import ON_ONE, Changed, step_case, weights


def conv(x: Any, w: Any, stride: int = 1) -> Any:
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def group_norm(x: Any, scale: Any, groups: int = 16) -> Any:
    y = x.reshape(*x.shape[:3], groups, -1)
    y = y - y.mean(axis=(1, 2, 4), keepdims=True)
    y = y * jax.lax.rsqrt(jnp.square(y).mean(axis=(1, 2, 4), keepdims=True) + 1e-5)
    return y.reshape(x.shape) * scale


@advised("v5e", "v5p", "h100", **ON_ONE)
def wide_residual(devices: list[Any], batch: int = 128, **changed: Any) -> Case:
    """A wide residual network for small images with group norm, under SGD with momentum."""
    widths = (160, 320, 640)

    def params() -> Tree:
        blocks, before = [], 16
        for width in widths:
            for _ in range(3):
                blocks.append(
                    weights(
                        a=(3, 3, before, width),
                        b=(3, 3, width, width),
                        skip=(1, 1, before, width),
                        scale_a=(before,),
                        scale_b=(width,),
                    )
                )
                before = width
        return {"stem": jnp.zeros((3, 3, 3, 16)), "blocks": blocks, "head": jnp.zeros((before, 100))}

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = conv(batch["image"], params["stem"])
        for i, p in enumerate(params["blocks"]):

            def block(p: Tree, x: Any, stride: int = 2 if i in (3, 6) else 1) -> Any:
                y = jax.nn.relu(group_norm(x, p["scale_a"]))
                z = jax.nn.relu(group_norm(conv(y, p["a"], stride), p["scale_b"]))
                return conv(z, p["b"]) + conv(y, p["skip"], stride)

            x = rematerialized(block, remat)(p, x)
        logits = (x.mean(axis=(1, 2)) @ params["head"]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    data = {"image": ((batch, 32, 32, 3), jnp.float32), "label": ((batch,), jnp.int32)}
    return step_case(devices[:1], params, loss, data, "momentum", Changed(**changed))


@advised("v5e", "v6e", "h100", **ON_ONE)
def denoiser(devices: list[Any], batch: int = 16, **changed: Any) -> Case:
    """A denoising U-Net of residual blocks with a noise level, under Adam."""
    widths = (64, 128, 256)

    def params() -> Tree:
        def block(before: int, width: int) -> Tree:
            return weights(
                a=(3, 3, before, width), b=(3, 3, width, width), skip=(1, 1, before, width), scale=(width,),
                level=(64, width),
            )  # fmt: skip

        down = [block(b, w) for b, w in zip((32, *widths), widths, strict=False)]
        up = [block(3 * w, w) for w in reversed(widths[:-1])]
        return {"stem": jnp.zeros((3, 3, 3, 32)), "down": down, "up": up, "head": jnp.zeros((1, 1, 64, 3))}

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        level, noise = batch["level"], batch["noise"]
        x = conv(batch["image"] + level[:, None, None, None] * noise, params["stem"])
        features = jnp.cos(level[:, None] * jnp.arange(64, dtype=level.dtype))

        def block(p: Tree, x: Any) -> Any:
            y = jax.nn.silu(group_norm(conv(x, p["a"]), p["scale"]) + (features @ p["level"])[:, None, None])
            return conv(y, p["b"]) + conv(x, p["skip"])

        block, skips = rematerialized(block, remat), []
        for p in params["down"]:
            x = block(p, x)
            skips.append(x)
            x = x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2] // 2, 2, -1).mean(axis=(2, 4))
        x = x.repeat(2, axis=1).repeat(2, axis=2)
        for p, skip in zip(params["up"], reversed(skips[:-1]), strict=True):
            x = block(p, jnp.concatenate([x.repeat(2, axis=1).repeat(2, axis=2), skip], axis=-1))
        return jnp.mean(jnp.square(conv(x, params["head"]) - noise).astype(jnp.float32))

    image = (batch, 128, 128, 3)
    data = {"image": (image, jnp.float32), "noise": (image, jnp.float32), "level": ((batch,), jnp.float32)}
    return step_case(devices[:1], params, loss, data, "adam", Changed(**changed))


@advised("v5e", "h100", **ON_ONE)
def critic(devices: list[Any], batch: int = 256, **changed: Any) -> Case:
    """The critic's step of an adversarial network: real and made images, under Adam."""
    widths = (64, 128, 256, 512)

    def params() -> Tree:
        pairs = zip((3, *widths), widths, strict=False)
        return {"convs": [weights(w=(4, 4, b, w)) for b, w in pairs], "out": jnp.zeros((512,))}

    def judge(params: Tree, x: Any, remat: str) -> Any:
        for p in params["convs"]:
            x = rematerialized(lambda p, x: jax.nn.leaky_relu(conv(x, p["w"], 2), 0.2), remat)(p, x)
        return (x.mean(axis=(1, 2)) @ params["out"]).astype(jnp.float32)

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        real, made = judge(params, batch["real"], remat), judge(params, batch["made"], remat)
        return jnp.mean(jax.nn.softplus(-real)) + jnp.mean(jax.nn.softplus(made))

    image = (batch, 128, 128, 3)
    data = {"real": (image, jnp.float32), "made": (image, jnp.float32)}
    return step_case(devices[:1], params, loss, data, "adam", Changed(**changed))


@advised("v6e", "h100", **ON_ONE)
def sound_waves(devices: list[Any], batch: int = 16, **changed: Any) -> Case:
    """Dilated causal convolutions over sound (WaveNet), sixteen gated layers, under Adam."""
    width, length, levels = 128, 8192, 256

    def params() -> Tree:
        layers = [weights(w=(2, width, 2 * width), skip=(width, width), out=(width, width)) for _ in range(16)]
        return {"embed": jnp.zeros((levels, width)), "layers": layers, "head": jnp.zeros((width, levels))}

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = params["embed"][batch["wave"]]
        total = jnp.zeros_like(x)
        for i, p in enumerate(params["layers"]):

            def layer(p: Tree, x: Any, dilation: int = 2 ** (i % 8)) -> Any:
                y = jax.lax.conv_general_dilated(
                    x, p["w"], (1,), [(dilation, 0)], rhs_dilation=(dilation,), dimension_numbers=("NWC", "WIO", "NWC")
                )
                filtered, gate = jnp.split(y, 2, axis=-1)
                y = jnp.tanh(filtered) * jax.nn.sigmoid(gate)
                return x + y @ p["out"], y @ p["skip"]

            x, skip = rematerialized(layer, remat)(p, x)
            total = total + skip
        logits = (jax.nn.relu(total) @ params["head"]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["next"]).mean()

    data = {"wave": ((batch, length), jnp.int32), "next": ((batch, length), jnp.int32)}
    return step_case(devices[:1], params, loss, data, "adam", Changed(**changed))
