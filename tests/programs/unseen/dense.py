"""Networks of matrix products: perceptrons, mixers, embeddings, two towers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, advised
from programs.training import rematerialized
from programs.unseen.step import CHANGES, ON_ONE, Changed, step_case, weights


@advised("v5e", "h100", **ON_ONE)
def regression(devices: list[Any], width: int = 4096, batch: int = 16384, **changed: Any) -> Case:
    """A wide perceptron with SELU and a squared error, under Adam."""

    def params() -> Tree:
        return [weights(kernel=(width, width), bias=(width,)) for _ in range(6)]

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        layer = rematerialized(lambda p, x: jax.nn.selu(x @ p["kernel"] + p["bias"]), remat)
        x = batch["x"]
        for p in params:
            x = layer(p, x)
        return jnp.mean(jnp.square(x - batch["y"]).astype(jnp.float32))

    data = {"x": ((batch, width), jnp.float32), "y": ((batch, width), jnp.float32)}
    return step_case(devices[:1], params, loss, data, "adam", Changed(**changed))


@advised("v6e", "h100", **ON_ONE)
def mixer(devices: list[Any], batch: int = 64, **changed: Any) -> Case:
    """An MLP-Mixer with layer norm, under SGD with momentum."""
    patches, width, layers = 256, 1024, 10

    def params() -> Tree:
        block: dict[str, tuple[int, ...]] = {
            "scale": (width,), "tokens_in": (patches, 512), "tokens_out": (512, patches), "scale_2": (width,),
            "channels_in": (width, 4 * width), "channels_out": (4 * width, width),
        }  # fmt: skip
        return {
            "stem": weights(w=(768, width)),
            "blocks": [weights(**block) for _ in range(layers)],
            "head": weights(w=(width, 1000)),
        }

    def norm(x: Any, scale: Any) -> Any:
        x = x - x.mean(axis=-1, keepdims=True)
        return x * jax.lax.rsqrt(jnp.square(x).mean(axis=-1, keepdims=True) + 1e-6) * scale

    def block(p: Tree, x: Any) -> Any:
        y = norm(x, p["scale"]).swapaxes(1, 2)
        x = x + (jax.nn.gelu(y @ p["tokens_in"]) @ p["tokens_out"]).swapaxes(1, 2)
        return x + jax.nn.gelu(norm(x, p["scale_2"]) @ p["channels_in"]) @ p["channels_out"]

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = batch["patches"] @ params["stem"]["w"]
        for p in params["blocks"]:
            x = rematerialized(block, remat)(p, x)
        logits = (x.mean(axis=1) @ params["head"]["w"]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    data = {"patches": ((batch, patches, 768), jnp.float32), "label": ((batch,), jnp.int32)}
    return step_case(devices[:1], params, loss, data, "momentum", Changed(**changed))


@advised("v5e", "v6e", "h100", **CHANGES)
def word_vectors(devices: list[Any], batch: int = 32768, **changed: Any) -> Case:
    """One large table of embeddings on each of four devices, trained with sampled negatives, under Adam."""
    words, width = 1_000_000, 256

    def params() -> Tree:
        return {"table": jnp.zeros((words, width)), "project": jnp.zeros((width, width))}

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        center = params["table"][batch["word"]] @ params["project"]
        scores = jnp.einsum("bd,bkd->bk", center, params["table"][batch["context"]]).astype(jnp.float32)
        return jnp.mean(jax.nn.softplus(-scores[:, 0])) + jnp.mean(jax.nn.softplus(scores[:, 1:]))

    data = {"word": ((batch,), jnp.int32), "context": ((batch, 6), jnp.int32)}
    return step_case(devices, params, loss, data, "adam", Changed(**changed))


@advised("v6e", "v5p", **CHANGES)
def classified_words(devices: list[Any], batch: int = 4096, **changed: Any) -> Case:
    """A large table of embeddings before a small network and a softmax over many labels, under Lion."""
    words, width, labels = 500_000, 512, 50_000

    def params() -> Tree:
        return {"table": jnp.zeros((words, width)), "w": jnp.zeros((width, width)), "out": jnp.zeros((width, labels))}

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = params["table"][batch["words"]].mean(axis=1)
        logits = (jax.nn.relu(x @ params["w"]) @ params["out"]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    data = {"words": ((batch, 32), jnp.int32), "label": ((batch,), jnp.int32)}
    return step_case(devices, params, loss, data, "lion", Changed(**changed))
