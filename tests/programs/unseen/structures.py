"""Steps of other structures: two towers, nested scans, graphs, classes of pixels, speech, grouped heads, experts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, advised
from programs.training import rematerialized
from programs.unseen.images import conv
from programs.unseen.languages import TOKENS, rms_norm
from programs.unseen.sequences import attention_shapes, encoder_layer, layer_norm, softmax_loss
from programs.unseen.step import CHANGES, ON_ONE, Changed, step_case, weights

# Examples are compared with each other, or are one graph.
WITHOUT_PARTS = {name: knobs for name, knobs in ON_ONE.items() if name != "microbatching"}


@advised("v5e", "v6e", "h100", **WITHOUT_PARTS)
def contrastive(devices: list[Any], batch: int = 256, **changed: Any) -> Case:
    """Pictures and captions in two towers, whose products of all pairs are compared, under AdamW."""
    patches, words, width = 196, 64, 512

    def params() -> Tree:
        def tower() -> list[Tree]:
            return [weights(**attention_shapes(width, 4 * width)) for _ in range(6)]

        return {
            "stem": jnp.zeros((768, width)), "embed": jnp.zeros((32000, width)), "pictures": tower(), "words": tower(),
            "picture_out": jnp.zeros((width, width)), "word_out": jnp.zeros((width, width)), "scale": jnp.zeros(()),
        }  # fmt: skip

    def through(layers: list[Tree], x: Any, remat: str) -> Any:
        for p in layers:
            x = rematerialized(lambda p, x: encoder_layer(p, x, 8), remat)(p, x)
        return x.mean(1)

    def unit(x: Any) -> Any:
        x = x.astype(jnp.float32)
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        pictures = through(params["pictures"], batch["patches"] @ params["stem"], remat) @ params["picture_out"]
        words = through(params["words"], params["embed"][batch["words"]], remat) @ params["word_out"]
        logits = jnp.exp(params["scale"]) * unit(pictures) @ unit(words).T
        same = jnp.arange(logits.shape[0])
        cross = optax.softmax_cross_entropy_with_integer_labels
        return (cross(logits, same) + cross(logits.T, same)).mean() / 2

    data = {"patches": ((batch, patches, 768), jnp.float32), "words": ((batch, words), TOKENS)}
    return step_case(devices[:1], params, loss, data, "adamw", Changed(**changed))


@advised("v5e", "v5p", "h100", **ON_ONE)
def selective_states(devices: list[Any], batch: int = 32, length: int = 512, **changed: Any) -> Case:
    """A scan over six layers, each with a scan over time whose state forgets as its input says, under Adam."""
    vocabulary, width, states = 16384, 512, 8

    def params() -> Tree:
        shapes = {
            "norm": (width,), "into": (width, 2 * width), "step": (width, width), "b": (width, states),
            "c": (width, states), "a": (width, states), "out": (width, width),
        }  # fmt: skip
        return {"embed": jnp.zeros((vocabulary, width)), "layers": weights(**{n: (6, *s) for n, s in shapes.items()})}

    def layer(x: Any, p: Tree) -> Any:
        u, gate = jnp.split(rms_norm(x, p["norm"]) @ p["into"], 2, axis=-1)
        step = jax.nn.softplus(u @ p["step"])

        def move(h: Any, at: Any) -> Any:
            u, step, b, c = at
            h = h * jnp.exp(-step[..., None] * jnp.exp(p["a"])) + (step * u)[..., None] * b[:, None]
            return h, (h * c[:, None]).sum(-1)

        over_time = tuple(jnp.moveaxis(a, 1, 0) for a in (u, step, u @ p["b"], u @ p["c"]))
        _, y = jax.lax.scan(move, jnp.zeros((x.shape[0], width, states), x.dtype), over_time)
        return x + (jnp.moveaxis(y, 0, 1) * jax.nn.silu(gate)) @ p["out"], None

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x, _ = jax.lax.scan(rematerialized(layer, remat), params["embed"][batch["tokens"]], params["layers"])
        return softmax_loss(x @ params["embed"].T, batch["next"])

    data = {"tokens": ((batch, length), TOKENS), "next": ((batch, length), TOKENS)}
    return step_case(devices[:1], params, loss, data, "adam", Changed(**changed))


@advised("v5p", "v6e", "h100", **WITHOUT_PARTS)
def molecules(devices: list[Any], nodes: int = 65536, edges: int = 524288, **changed: Any) -> Case:
    """Messages along the edges of many molecules in one graph, eight rounds, energies of each, under AdamW."""
    width, graphs = 128, 1024

    def params() -> Tree:
        rounds = [weights(a=(2 * width + 16, width), b=(width, width), c=(2 * width, width)) for _ in range(8)]
        return {"atoms": jnp.zeros((100, width)), "rounds": rounds, "out": jnp.zeros((width, 1))}

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        def message(p: Tree, x: Any) -> Any:
            ends = jnp.concatenate([x[batch["from"]], x[batch["to"]], batch["distance"]], -1)
            found = jax.nn.silu(jax.nn.silu(ends @ p["a"]) @ p["b"])
            arrived = jax.ops.segment_sum(found, batch["to"], nodes)
            return x + jax.nn.silu(jnp.concatenate([x, arrived], -1) @ p["c"])

        x = params["atoms"][batch["kind"]]
        for p in params["rounds"]:
            x = rematerialized(message, remat)(p, x)
        energy = jax.ops.segment_sum((x @ params["out"])[:, 0], batch["molecule"], graphs)
        return jnp.mean(jnp.abs(energy.astype(jnp.float32) - batch["energy"]))

    data = {
        "kind": ((nodes,), TOKENS), "molecule": ((nodes,), TOKENS), "energy": ((graphs,), jnp.float32),
        "from": ((edges,), TOKENS), "to": ((edges,), TOKENS), "distance": ((edges, 16), jnp.float32),
    }  # fmt: skip
    return step_case(devices[:1], params, loss, data, "adamw", Changed(**changed))


@advised("v5e", "v6e", "h100", **ON_ONE)
def street_scenes(devices: list[Any], batch: int = 16, **changed: Any) -> Case:
    """The class of each pixel of a picture: convolutions with batch norm down and up again, under momentum."""
    widths = (64, 128, 256)

    def params() -> Tree:
        def block(before: int, after: int) -> Tree:
            return weights(a=(3, 3, before, after), b=(3, 3, after, after), scale=(after,), shift=(after,))

        down = [block(n, m) for n, m in zip((3, *widths), widths, strict=False)]
        up = [block(n + m, m) for n, m in zip(widths[:0:-1], widths[-2::-1], strict=True)]
        return {"down": down, "up": up, "out": jnp.zeros((1, 1, widths[0], 19))}

    def normalized(x: Any, p: Tree) -> Any:
        wide = x.astype(jnp.float32)
        mean, square = wide.mean((0, 1, 2)), jnp.square(wide).mean((0, 1, 2))
        return ((wide - mean) * jax.lax.rsqrt(square - jnp.square(mean) + 1e-5)).astype(x.dtype) * p["scale"] + p[
            "shift"
        ]

    def block(p: Tree, x: Any) -> Any:
        x = jax.nn.relu(normalized(conv(x, p["a"]), p))
        return jax.nn.relu(normalized(conv(x, p["b"]), p))

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x, passed = batch["image"], []
        for p in params["down"]:
            x = rematerialized(block, remat)(p, x)
            passed.append(x)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        x = passed.pop()
        for p in params["up"]:
            x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
            x = rematerialized(block, remat)(p, jnp.concatenate([x, passed.pop()], -1))
        return softmax_loss(conv(x, params["out"]), batch["label"])

    data = {"image": ((batch, 256, 512, 3), jnp.float32), "label": ((batch, 256, 512), TOKENS)}
    return step_case(devices[:1], params, loss, data, "momentum", Changed(**changed))


@advised("v5e", "v5p", "h100", **ON_ONE)
def speech(devices: list[Any], batch: int = 64, frames: int = 1600, **changed: Any) -> Case:
    """Frames of speech: two strided convolutions, then attention and convolutions by channel in turn, under AdamW."""
    width = 512

    def params() -> Tree:
        shapes = attention_shapes(width, 4 * width)
        layers = [weights(**shapes, norm=(width,), gate=(width, 2 * width), along=(15, 1, width), out=(width, width))
                  for _ in range(8)]  # fmt: skip
        return {
            "a": jnp.zeros((3, 80, width)), "b": jnp.zeros((3, width, width)), "layers": layers,
            "head": jnp.zeros((width, 1024)),
        }  # fmt: skip

    def along_time(x: Any, w: Any, stride: int = 1) -> Any:
        groups = x.shape[-1] // w.shape[1]
        return jax.lax.conv_general_dilated(
            x, w, (stride,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=groups
        )

    def layer(p: Tree, x: Any) -> Any:
        x = encoder_layer(p, x, 8)
        one, two = jnp.split(layer_norm(x, p["norm"]) @ p["gate"], 2, axis=-1)
        return x + jax.nn.silu(along_time(one * jax.nn.sigmoid(two), p["along"])) @ p["out"]

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = jax.nn.relu(along_time(jax.nn.relu(along_time(batch["sound"], params["a"], 2)), params["b"], 2))
        for p in params["layers"]:
            x = rematerialized(layer, remat)(p, x)
        return softmax_loss(x @ params["head"], batch["label"])

    data = {"sound": ((batch, frames, 80), jnp.float32), "label": ((batch, frames // 4), TOKENS)}
    return step_case(devices[:1], params, loss, data, "adamw", Changed(**changed))


@advised("v5e", "v5p", "h100", **CHANGES)
def grouped_heads(devices: list[Any], batch: int = 16, length: int = 1024, **changed: Any) -> Case:
    """A decoder whose four heads of keys serve sixteen of queries, gated perceptrons, on four devices, under Lion."""
    vocabulary, width, heads, groups = 32768, 1024, 16, 4

    def params() -> Tree:
        size = width // heads
        shapes = {
            "norm_1": (width,), "wq": (width, width), "wk": (width, groups * size), "wv": (width, groups * size),
            "wo": (width, width), "norm_2": (width,), "gate": (width, 2816), "up": (width, 2816), "down": (2816, width),
        }  # fmt: skip
        return {
            "embed": jnp.zeros((vocabulary, width)), "layers": [weights(**shapes) for _ in range(6)],
            "norm": jnp.zeros(width), "head": jnp.zeros((width, vocabulary)),
        }  # fmt: skip

    def layer(p: Tree, x: Any) -> Any:
        y = rms_norm(x, p["norm_1"])
        q, k, v = ((y @ p[n]).reshape(*y.shape[:2], -1, width // heads) for n in ("wq", "wk", "wv"))
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ p["wo"]
        y = rms_norm(x, p["norm_2"])
        return x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = params["embed"][batch["tokens"]]
        for p in params["layers"]:
            x = rematerialized(layer, remat)(p, x)
        return softmax_loss(rms_norm(x, params["norm"]) @ params["head"], batch["next"])

    data = {"tokens": ((batch, length), TOKENS), "next": ((batch, length), TOKENS)}
    return step_case(devices, params, loss, data, "lion", Changed(**changed))


@advised("v5e", "v5p", "h100", **CHANGES)
def routed_words(devices: list[Any], batch: int = 64, length: int = 256, **changed: Any) -> Case:
    """A decoder whose perceptrons are eight experts with room for some of the tokens each, on four devices."""
    vocabulary, width, experts = 16384, 768, 8

    def params() -> Tree:
        shapes = {**attention_shapes(width, 1), "router": (width, experts), "w1": (experts, width, 3072),
                  "w2": (experts, 3072, width)}  # fmt: skip
        return {"embed": jnp.zeros((vocabulary, width)), "layers": [weights(**shapes) for _ in range(4)]}

    def layer(p: Tree, x: Any) -> Any:
        one = {"w1": jnp.zeros((width, 1), x.dtype), "w2": jnp.zeros((1, width), x.dtype)}
        x = encoder_layer({**p, **one}, x, 12, causal=True)
        y = layer_norm(x, p["norm_2"])
        share = jax.nn.softmax((y @ p["router"]).astype(jnp.float32))
        room = 2 * x.shape[1] // experts
        chosen = jax.nn.one_hot(share.argmax(-1), experts)
        place = jnp.cumsum(chosen, axis=1) * chosen - 1
        sent = jax.nn.one_hot(place, room, dtype=x.dtype) * chosen[..., None].astype(x.dtype)
        given = jnp.einsum("blec,bld->becd", sent, y)
        found = jnp.einsum("becf,efd->becd", jax.nn.gelu(jnp.einsum("becd,edf->becf", given, p["w1"])), p["w2"])
        back = sent * share[..., None].astype(x.dtype)
        return x + jnp.einsum("blec,becd->bld", back, found)

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = params["embed"][batch["tokens"]]
        for p in params["layers"]:
            x = rematerialized(layer, remat)(p, x)
        return softmax_loss(x @ params["embed"].T, batch["next"])

    data = {"tokens": ((batch, length), TOKENS), "next": ((batch, length), TOKENS)}
    return step_case(devices, params, loss, data, "adam", Changed(**changed))
