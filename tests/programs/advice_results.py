"""Programs whose knobs carry out advice on results: logits, gradients, activations and unchanged arguments."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from programs.advice_arguments import MODELS
from programs.advice_models import block, optimizer, training_case
from programs.case import ADVISED, Case, CaseBuilder, Tree, advised
from programs.sharding import replicated, shapes, split_batch

BOTH = ("v5e", "h100")


def _returning(model: str, name: str, returned: str, devices_used: int) -> Any:
    def build(devices: list[Any], returns: str = returned) -> Case:
        made = MODELS[model](devices_used)
        return training_case(made, optimizer(name), devices[:devices_used], donate=not returns, returns=returns)

    return build


def _with_gradients(model: str, name: str, devices_used: int) -> Any:
    def build(devices: list[Any], returns: str = "both") -> Case:
        made = MODELS[model](devices_used)
        return training_case(made, optimizer(name), devices[:devices_used], donate=True, returns=returns)

    return build


UPDATED = {"Gradients are returned": {"returns": ""}}
for _model in ("mlp", "lm", "scan_lm", "remat_lm", "conv", "bf16_lm"):
    for _used in (1, 4):
        _name = f"grads_{_model}{'_x4' if _used > 1 else ''}"
        ADVISED[_name] = CaseBuilder(_name, _returning(_model, "sgd", "gradients", _used), BOTH, UPDATED)
for _model, _optimizer in (("mlp", "adam"), ("lm", "momentum"), ("scan_lm", "adamw"), ("conv", "momentum")):
    _name = f"logged_grads_{_model}"
    ADVISED[_name] = CaseBuilder(_name, _with_gradients(_model, _optimizer, 1), BOTH, UPDATED)


def _decoder(layers: int, width: int, vocab: int, dtype: Any) -> Tree:
    square = {name: jnp.zeros((width, width), dtype) for name in "qkvo"}
    mlp = {"up": jnp.zeros((width, 4 * width), dtype), "down": jnp.zeros((4 * width, width), dtype)}
    norms = {"norm": jnp.ones(width, dtype), "norm2": jnp.ones(width, dtype)}
    blocks = [square | mlp | norms for _ in range(layers)]
    return {"embed": jnp.zeros((vocab, width), dtype), "blocks": blocks, "head": jnp.zeros((width, vocab), dtype)}


def _hidden(params: Tree, tokens: Any) -> Any:
    x = params["embed"][tokens]
    for p in params["blocks"]:
        x = block(p, x)
    return x


def _scoring(devices: list[Any], last: bool, dtype: Any, output: Any, sizes: tuple[int, ...], count: int = 1) -> Case:
    layers, width, vocab, batch, length = sizes

    def score(params: Tree, tokens: Any) -> Any:
        x = _hidden(params, tokens)
        return ((x[:, -1:] if last else x) @ params["head"]).astype(output)

    one, data = replicated(devices[:count]), split_batch(devices[:count])
    params = shapes(lambda: _decoder(layers, width, vocab, dtype), one)
    return Case(jax.jit(score), (params, data((batch * count, length), jnp.int32)), ("parameter", "input"))


LAST = {"Return less": {"last": True}}


@advised(*BOTH, **LAST)
def logits_f32(devices: list[Any], last: bool = False) -> Case:
    """Logits of f32 weights."""
    return _scoring(devices, last, jnp.float32, jnp.float32, (2, 1024, 32768, 8, 512))


@advised(*BOTH, **LAST)
def logits_bf16(devices: list[Any], last: bool = False) -> Case:
    """Logits in bf16 of a large vocabulary."""
    return _scoring(devices, last, jnp.bfloat16, jnp.bfloat16, (2, 1024, 131072, 4, 512))


@advised(*BOTH, **LAST)
def logits_widened(devices: list[Any], last: bool = False) -> Case:
    """Logits in f32 of bf16 weights, a short context."""
    return _scoring(devices, last, jnp.bfloat16, jnp.float32, (3, 512, 65536, 64, 64))


@advised(*BOTH, **LAST)
def logits_split(devices: list[Any], last: bool = False) -> Case:
    """Logits of a batch that four devices split."""
    return _scoring(devices, last, jnp.bfloat16, jnp.float32, (2, 1024, 32768, 8, 256), 4)


@advised(*BOTH, **LAST)
def logits_linen(devices: list[Any], last: bool = False) -> Case:
    """Logits of a Flax model, with a bias, after log_softmax."""
    from flax import linen as nn

    class Scorer(nn.Module):
        @nn.compact
        def __call__(self, tokens: Any) -> Any:
            x = nn.Embed(50257, 768)(tokens)
            for _ in range(2):
                x = x + nn.Dense(768)(nn.gelu(nn.Dense(3072)(nn.LayerNorm()(x))))
            return nn.log_softmax(nn.Dense(50257)(x[:, -1:] if last else x))

    model = Scorer()
    params = shapes(
        lambda: model.init(jax.random.key(0), jnp.zeros((1, 256), jnp.int32)), one := replicated(devices[:1])
    )
    return Case(
        jax.jit(lambda params, tokens: model.apply(params, tokens)),
        (params, shapes(lambda: jnp.zeros((8, 256), jnp.int32), one)),
        ("parameter", "input"),
    )


@advised(*BOTH, outputs={"last": True})
def logits_and_cache(devices: list[Any], last: bool = False) -> Case:
    """Prefill: the keys and values of each layer are needed, and only the last position's logits."""
    width, vocab = 1024, 32768

    def prefill(params: Tree, tokens: Any) -> Any:
        x, cache = params["embed"][tokens], []
        for p in params["blocks"]:
            cache.append((x @ p["k"], x @ p["v"]))
            x = block(p, x)
        return (x[:, -1:] if last else x) @ params["head"], cache

    one = replicated(devices[:1])
    return Case(
        jax.jit(prefill),
        (
            shapes(lambda: _decoder(2, width, vocab, jnp.bfloat16), one),
            shapes(lambda: jnp.zeros((8, 512), jnp.int32), one),
        ),
        ("parameter", "input"),
    )
