"""A scaled-down Llama under each kind of sharding: full sharding of the state, tensor parallelism, both; and LoRA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec
from programs.case import Case, Tree, program
from programs.sharding import fully_sharded, grid, replicated, shapes, sharded, sharded_by_name
from programs.training import TRAINED, cast, jit_step, rematerialized, training_state, training_step
from programs.transformer import attention, cross_entropy, rms_norm

VOCABULARY, WIDTH, HEADS, HIDDEN, LENGTH = 32000, 2048, 16, 5504, 1024  # half of 7B in each dimension
COLUMNS, ROWS = (None, "model"), ("model", None)
TENSOR_PARALLEL: dict[str, tuple[Any, ...]] = {
    "embed": ROWS, "head": COLUMNS, "q": COLUMNS, "k": COLUMNS, "v": COLUMNS, "o": ROWS,
    "gate": COLUMNS, "up": COLUMNS, "down": ROWS,
}  # fmt: skip
BOTH = {name: tuple(axis or "data" for axis in rule) for name, rule in TENSOR_PARALLEL.items()}


def llama(layers: int, dtype: Any = jnp.float32) -> Tree:
    square = (layers, WIDTH, WIDTH)
    of_layer = {
        "norm_1": (layers, WIDTH), "q": square, "k": square, "v": square, "o": square, "norm_2": (layers, WIDTH),
        "gate": (layers, WIDTH, HIDDEN), "up": (layers, WIDTH, HIDDEN), "down": (layers, HIDDEN, WIDTH),
    }  # fmt: skip
    return {
        "embed": jnp.zeros((VOCABULARY, WIDTH), dtype),
        "layers": {name: jnp.zeros(shape, dtype) for name, shape in of_layer.items()},
        "norm": jnp.zeros(WIDTH, dtype),
        "head": jnp.zeros((WIDTH, VOCABULARY), dtype),
    }


def rotate(x: Any) -> Any:
    """Return x with rotary position embeddings."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[:, None].astype(x.dtype), jnp.sin(angle)[:, None].astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def layer(p: Tree, x: Any) -> Any:
    batch, length, _ = x.shape
    h = rms_norm(x, p["norm_1"])
    q, k, v = ((h @ p[name]).reshape(batch, length, HEADS, -1) for name in "qkv")
    x = x + attention(rotate(q), rotate(k), v).reshape(batch, length, WIDTH) @ p["o"]
    h = rms_norm(x, p["norm_2"])
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]


def llama_loss(params: Tree, tokens: Any, remat: str, keep: Callable[[Any], Any] = lambda x: x) -> Any:
    """Return the loss of the next tokens; `keep` may constrain how activations are split."""
    params = cast(params, "bfloat16")
    one = rematerialized(layer, remat)
    x = keep(params["embed"][tokens[:, :-1]])
    x, _ = jax.lax.scan(lambda x, p: (keep(one(p, x)), None), x, params["layers"])
    return cross_entropy(keep(rms_norm(x, params["norm"]) @ params["head"]), tokens[:, 1:])


def _case(
    devices: list[Any], rules: Any, donate: bool, microbatches: int, remat: str, batch: int, constrained: bool = False
) -> Case:
    optimizer = optax.adamw(1e-4)

    def initial() -> Tree:
        return training_state(llama(4), optimizer)

    mesh = grid(devices, 1 if rules is None else 2)
    rest = PartitionSpec.UNCONSTRAINED

    def keep(x: Any) -> Any:
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec("data", rest, rest)))

    def loss(params: Tree, tokens: Any) -> Any:
        return llama_loss(params, tokens, remat, keep) if constrained else llama_loss(params, tokens, remat)

    state = fully_sharded(initial, mesh) if rules is None else sharded_by_name(initial, mesh, rules)
    return Case(
        jit_step(training_step(loss, optimizer, microbatches), donate),
        (state, sharded(mesh, (batch, LENGTH + 1), jnp.int32, "data")),
        (TRAINED, "input"),
    )


@program(
    "v5e", "tpu7x", microbatching={"microbatches": 2}, rematerialization={"remat": "layer"},
    Split_the_batch={"constrained": True},
)  # fmt: skip
def llama_fsdp(
    devices: list[Any], donate: bool = True, microbatches: int = 1, remat: str = "dots", batch: int = 16,
    constrained: bool = False,
) -> Case:  # fmt: skip
    """Parameters and optimizer state are split between all devices and gathered where they are used."""
    return _case(devices, None, donate, microbatches, remat, batch, constrained)


@program(
    "v5p", "v6e", donation={"donate": True}, microbatching={"microbatches": 2}, rematerialization={"remat": "layer"}
)
def llama_tensor_parallel(
    devices: list[Any], donate: bool = False, microbatches: int = 1, remat: str = "none", batch: int = 8
) -> Case:
    """Weights are split between two devices, the batch between two pairs."""
    return _case(devices, TENSOR_PARALLEL, donate, microbatches, remat, batch)


@program("v4", "v6e", "h100", microbatching={"microbatches": 2}, Split_the_batch={"constrained": True})
def llama_fsdp_tensor_parallel(
    devices: list[Any], donate: bool = True, microbatches: int = 1, remat: str = "layer", batch: int = 16,
    constrained: bool = False,
) -> Case:  # fmt: skip
    """Weights are split along both axes of the mesh."""
    return _case(devices, BOTH, donate, microbatches, remat, batch, constrained)


@program("v5e", "h100", donation={"donate": True}, rematerialization={"remat": "layer"})
def lora(devices: list[Any], donate: bool = False, remat: str = "none", batch: int = 4, rank: int = 16) -> Case:
    """Low-rank adapters are trained; the frozen base is an argument of its own, and a parameter."""
    optimizer, layers = optax.adam(1e-4), 4

    def adapters() -> Tree:
        return {name: {"a": jnp.zeros((layers, WIDTH, rank)), "b": jnp.zeros((layers, rank, WIDTH))} for name in "qv"}

    def loss(adapters: Tree, base: Tree, tokens: Any) -> Any:
        def adapted(p: Tree, x: Any) -> Any:
            weights, low = p
            deltas = {name: (low[name]["a"] @ low[name]["b"]).astype(jnp.bfloat16) for name in "qv"}
            return layer(weights | {name: weights[name] + deltas[name] for name in "qv"}, x)

        one = rematerialized(adapted, remat)
        both = (base["layers"], adapters)
        x, _ = jax.lax.scan(lambda x, p: (one(p, x), None), base["embed"][tokens[:, :-1]], both)
        return cross_entropy(rms_norm(x, base["norm"]) @ base["head"], tokens[:, 1:])

    def step(state: Tree, base: Tree, tokens: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(state["params"], base, tokens)
        updates, opt = optimizer.update(grads, state["opt"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value

    one = replicated(devices[:1])
    return Case(
        jit_step(step, donate),
        (
            shapes(lambda: training_state(adapters(), optimizer), one),
            shapes(lambda: llama(layers, jnp.bfloat16), one),
            jax.ShapeDtypeStruct((batch, LENGTH + 1), jnp.int32, sharding=one),
        ),
        (TRAINED, "parameter", "input"),
    )
