"""Steps that are no language model: fields, dynamics, players, pictures, customers."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from programs.case import Case, Tree, advised, program
from programs.training import rematerialized
from programs.unseen.images import conv, group_norm
from programs.unseen.sequences import layer_norm, softmax_loss
from programs.unseen.step import CHANGES, ON_ONE, Changed, step_case, weights


@advised("v5e", "v6e", "h100", **ON_ONE)
def radiance(devices: list[Any], batch: int = 4096, samples: int = 128, **changed: Any) -> Case:
    """A radiance field: a perceptron over samples along rays, whose colours are added up, under Adam."""
    width, encoded = 256, 63

    def params() -> Tree:
        widths = [encoded, width, width, width, width + encoded, width, width, width]
        return {"layers": [weights(w=(n, width), b=(width,)) for n in widths], "out": weights(w=(width, 4), b=(4,))}

    def field(p: Tree, x: Any, remat: str) -> Any:
        h, layer = x, rematerialized(lambda p, h: jax.nn.relu(h @ p["w"] + p["b"]), remat)
        for i, weights_of_layer in enumerate(p["layers"]):
            h = layer(weights_of_layer, jnp.concatenate([h, x], -1) if i == 4 else h)
        return h @ p["out"]["w"] + p["out"]["b"]

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        t = jnp.linspace(2.0, 6.0, samples).astype(batch["origin"].dtype)
        points = batch["origin"][:, None] + batch["direction"][:, None] * t[:, None]
        waves = points[..., None] * 2.0 ** jnp.arange(10).astype(points.dtype)
        waves = waves.reshape(*points.shape[:2], 30)
        encoding = jnp.concatenate([points, jnp.sin(waves), jnp.cos(waves)], -1)
        out = field(params, encoding, remat)
        opaque = 1 - jnp.exp(-jax.nn.relu(out[..., 3]) * (4.0 / samples))
        passed = jnp.cumprod(1 - opaque + 1e-6, axis=1)
        colour = (jax.nn.sigmoid(out[..., :3]) * (opaque * passed)[..., None]).sum(1)
        return jnp.mean(jnp.square(colour - batch["colour"]).astype(jnp.float32))

    data = dict.fromkeys(("origin", "direction", "colour"), ((batch, 3), jnp.float32))
    return step_case(devices[:1], params, loss, data, "adam", Changed(**changed))


@advised("v5e", "v5p", "h100", **ON_ONE)
def flow_in_time(devices: list[Any], batch: int = 16384, steps: int = 40, **changed: Any) -> Case:
    """A neural differential equation: Runge-Kutta steps in a scan, differentiated through, under Adam."""
    width, hidden = 64, 256

    def params() -> Tree:
        return weights(w1=(width, hidden), b1=(hidden,), w2=(hidden, hidden), b2=(hidden,), w3=(hidden, width))

    def speed(p: Tree, x: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]) @ p["w3"]

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        def step(x: Any, _: Any) -> Any:
            a = speed(params, x)
            b = speed(params, x + 0.05 * a)
            c = speed(params, x + 0.05 * b)
            d = speed(params, x + 0.1 * c)
            return x + (0.1 / 6) * (a + 2 * b + 2 * c + d), None

        x, _ = jax.lax.scan(rematerialized(step, remat), batch["x"], None, length=steps)
        return jnp.mean(jnp.square(x - batch["y"]).astype(jnp.float32))

    data = dict.fromkeys(("x", "y"), ((batch, width), jnp.float32))
    return step_case(devices[:1], params, loss, data, "adam", Changed(**changed))


@advised("v6e", "h100", **ON_ONE)
def player(devices: list[Any], batch: int = 8192, **changed: Any) -> Case:
    """A player of games from pictures: three convolutions, a policy and a value, clipped ratios, under AdamW."""

    def params() -> Tree:
        return {
            "convs": [weights(w=(8, 8, 4, 32)), weights(w=(4, 4, 32, 64)), weights(w=(3, 3, 64, 64))],
            "dense": weights(w=(11 * 11 * 64, 512), b=(512,)),
            "policy": weights(w=(512, 18)), "value": weights(w=(512, 1)),
        }  # fmt: skip

    def seen(p: Tree, x: Any, remat: str) -> Any:
        for layer, stride in zip(p["convs"], (4, 2, 1), strict=True):
            x = jax.nn.relu(rematerialized(partial(conv, stride=stride), remat)(x, layer["w"]))
        return jax.nn.relu(x.reshape(x.shape[0], -1) @ p["dense"]["w"] + p["dense"]["b"])

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        pictures = batch["pictures"].astype(params["dense"]["w"].dtype) / 255
        h = seen(params, pictures, remat)
        logits = jax.nn.log_softmax((h @ params["policy"]["w"]).astype(jnp.float32))
        chosen = jnp.take_along_axis(logits, batch["action"][:, None], 1)[:, 0]
        ratio = jnp.exp(chosen - batch["before"])
        gain = jnp.minimum(ratio * batch["gain"], jnp.clip(ratio, 0.8, 1.2) * batch["gain"])
        error = jnp.square((h @ params["value"]["w"])[:, 0] - batch["return"])
        return -gain.mean() + 0.5 * error.mean() + 0.01 * (jnp.exp(logits) * logits).sum(-1).mean()

    data: dict[str, Any] = dict.fromkeys(("before", "gain", "return"), ((batch,), jnp.float32))
    data |= {"pictures": ((batch, 84, 84, 4), jnp.uint8), "action": ((batch,), jnp.int32)}
    return step_case(devices[:1], params, loss, data, "adamw", Changed(**changed))


@advised("v5e", "v6e", "h100", **ON_ONE)
def convnext(devices: list[Any], batch: int = 64, **changed: Any) -> Case:
    """Convolutions by channel of 7x7 between layer norms and perceptrons, four stages, under AdamW."""
    widths, depths = (96, 192, 384, 768), (3, 3, 9, 3)

    def params() -> Tree:
        stages = []
        for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            blocks = [
                weights(
                    depthwise=(7, 7, 1, width),
                    norm=(width,),
                    up=(width, 4 * width),
                    down=(4 * width, width),
                    gamma=(width,),
                )
                for _ in range(depth)
            ]
            stem = weights(down=((4, 4, 3, width) if not i else (2, 2, widths[i - 1], width)), norm=(width,))
            stages.append({"stem": stem, "blocks": blocks})
        return {"stages": stages, "head": weights(w=(768, 1000))}

    def block(p: Tree, x: Any) -> Any:
        y = jax.lax.conv_general_dilated(
            x,
            p["depthwise"],
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=x.shape[-1],
        )
        return x + jax.nn.gelu(layer_norm(y, p["norm"]) @ p["up"]) @ p["down"] * p["gamma"]

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = batch["image"]
        for i, stage in enumerate(params["stages"]):
            x = layer_norm(conv(x, stage["stem"]["down"], 2 if i else 4), stage["stem"]["norm"])
            for p in stage["blocks"]:
                x = rematerialized(block, remat)(p, x)
        return softmax_loss(x.mean((1, 2)) @ params["head"]["w"], batch["label"])

    data = {"image": ((batch, 224, 224, 3), jnp.float32), "label": ((batch,), jnp.int32)}
    return step_case(devices[:1], params, loss, data, "adamw", Changed(**changed))


@advised("v5p", "v6e", "h100", **ON_ONE)
def autoencoder(devices: list[Any], batch: int = 128, **changed: Any) -> Case:
    """A variational autoencoder of 128x128 pictures with convolutions and their transposes, under Adam."""
    widths = (64, 128, 256, 512)

    def params() -> Tree:
        down = [weights(w=(4, 4, n, m), s=(m,)) for n, m in zip((3, *widths), widths, strict=False)]
        up = [weights(w=(4, 4, n, m), s=(m,)) for n, m in zip(widths[::-1], (*widths[-2::-1], 64), strict=True)]
        return {
            "down": down, "up": up, "mean": weights(w=(8 * 8 * 512, 256)), "spread": weights(w=(8 * 8 * 512, 256)),
            "start": weights(w=(256, 8 * 8 * 512)), "out": weights(w=(3, 3, 64, 3)),
        }  # fmt: skip

    def narrower(p: Tree, x: Any) -> Any:
        return jax.nn.silu(group_norm(conv(x, p["w"], 2), p["s"]))

    def wider(p: Tree, x: Any) -> Any:
        x = jax.lax.conv_transpose(x, p["w"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.nn.silu(group_norm(x, p["s"]))

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = batch["image"]
        for p in params["down"]:
            x = rematerialized(narrower, remat)(p, x)
        x = x.reshape(x.shape[0], -1)
        mean, spread = x @ params["mean"]["w"], x @ params["spread"]["w"]
        x = (mean + jnp.exp(0.5 * spread) * batch["noise"]) @ params["start"]["w"]
        x = x.reshape(-1, 8, 8, 512)
        for p in params["up"]:
            x = rematerialized(wider, remat)(p, x)
        x = conv(x, params["out"]["w"])
        error = jnp.square(x - batch["image"]).sum((1, 2, 3)).mean()
        return error - 0.5 * (1 + spread - jnp.square(mean) - jnp.exp(spread)).sum(-1).mean()

    data = {"image": ((batch, 128, 128, 3), jnp.float32), "noise": ((batch, 256), jnp.float32)}
    return step_case(devices[:1], params, loss, data, "adam", Changed(**changed))


@program("v5e", **CHANGES)
def clicks(devices: list[Any], batch: int = 32768, **changed: Any) -> Case:
    """Clicks on advertisements, on four devices: 26 tables, products of all pairs, a perceptron, under Adam."""
    rows, width, tables = 200_000, 64, 26

    def params() -> Tree:
        top = width + tables * (tables + 1) // 2
        return {
            "tables": jnp.zeros((tables, rows, width)),
            "bottom": [weights(w=(13, 512), b=(512,)), weights(w=(512, width), b=(width,))],
            "top": [weights(w=(n, m), b=(m,)) for n, m in ((top, 1024), (1024, 1024), (1024, 512), (512, 1))],
        }

    def perceptron(layers: list[Tree], x: Any) -> Any:
        for p in layers[:-1]:
            x = jax.nn.relu(x @ p["w"] + p["b"])
        return x @ layers[-1]["w"] + layers[-1]["b"]

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        dense = perceptron(params["bottom"], batch["dense"])
        found = jax.vmap(lambda t, i: t[i], in_axes=(0, 1), out_axes=1)(params["tables"], batch["sparse"])
        both = jnp.concatenate([dense[:, None], found], 1)
        products = jnp.einsum("bid,bjd->bij", both, both)
        one, two = jnp.tril_indices(tables + 1, -1)
        x = jnp.concatenate([dense, products[:, one, two]], 1)
        logit = rematerialized(perceptron, remat)(params["top"], x)[:, 0].astype(jnp.float32)
        return jnp.mean(jax.nn.softplus(logit) - logit * batch["label"])

    data = {
        "dense": ((batch, 13), jnp.float32), "sparse": ((batch, tables), jnp.int32), "label": ((batch,), jnp.float32)
    }  # fmt: skip
    return step_case(devices, params, loss, data, "adam", Changed(**changed))
